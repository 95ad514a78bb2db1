"""What is written anew each time the documentation is built: pages, pictures, sessions."""
