"""What is assumed of the weights, and how its parameters are learned. One module each."""
