"""Runs a model in OpenCV dnn."""

import sys

import cv2
import numpy as np

model, inputs, outputs = sys.argv[1:]
net = cv2.dnn.readNetFromONNX(model)
for name, array in np.load(inputs).items():
    net.setInput(array, name)
names = net.getUnconnectedOutLayersNames()
np.savez(outputs, **{str(index): array for index, array in enumerate(net.forward(names))})
