"""Experiments: the data sets, the methods and the measurements of the CIPLS paper, run again."""
