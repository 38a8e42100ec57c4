"""scikit-learn's contract: what users fit, and ask for predictions."""
