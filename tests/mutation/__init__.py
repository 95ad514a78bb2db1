"""Changes the code in small ways and looks whether its tests notice: mutation testing."""
