"""Compiled recursions, one sample after the other; one file a method.

A step of a recursion is a few passes over the features, each of which forms all it can while the entries are at hand:
it updates a vector of the state, deflates the sample, and takes the products that the next pass needs to begin. Such a
pass is a function of its own, for LLVM makes vector instructions of short loops, and gives up on the loop over samples
with everything written into it.

Results must not depend on where arrays are in memory. For arrays that may overlap LLVM has a second loop, without
vectors, where sums have another order. If a loop changes an array in place, LLVM compares whole ranges, and arrays
that do not overlap always take the first loop. But if each array is only read or only written, it compares distances,
and short arrays can be too close. So a loop that forms sums either changes an array in place or stores nothing. (Sums
in loops of their own everywhere would be slower by a third to a half.)

The functions without an underscore change the state in place, and return the number of the component whose numbers are
no longer finite, or -1.
"""
