# The command in a container; how to run it is in docs/pipelines.md.
FROM python:3.12-slim
COPY pyproject.toml README.md LICENSE /source/
COPY onnxreduce /source/onnxreduce
COPY onnxreduce_cli /source/onnxreduce_cli
RUN pip install --no-cache-dir --root-user-action ignore /source && rm -r /source
WORKDIR /models
ENTRYPOINT ["onnxreduce"]
