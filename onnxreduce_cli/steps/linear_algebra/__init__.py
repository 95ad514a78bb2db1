"""Products of matrices, determinants and Fourier transforms."""
