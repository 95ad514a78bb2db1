"""What runtimes make of models: measured, and scored."""
