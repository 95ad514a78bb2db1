"""What is done with files and models, whoever asks for it: functions of the library, commands."""
