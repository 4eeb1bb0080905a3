"""Compiled recursions, one sample after the other; one file a method.

A step of a recursion is a few passes over the features, each of which forms all it can while the entries are at hand:
it updates a vector of the state, deflates the sample, and takes the products that the next pass needs to begin. Such a
pass is a function of its own, for LLVM makes vector instructions of short loops, and gives up on the loop over samples
with everything written into it.

The functions without an underscore change the state in place, and return the number of the component whose numbers are
no longer finite, or -1.
"""
