"""Systems of the papers that the product does not use, for experiments; `benchmarks` run them.

Active learning with local patches, its four uncertainties and its stopping rule (000, Algorithm
1.2), and the random forests that structured learning is compared with (000, Table 1.1);
starts for learning from zero.
"""
