"""The parts of the readable answer, one module each; `kubesched.explanation.text` puts them together."""
