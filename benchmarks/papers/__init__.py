"""What the papers measure, and their systems that the program does not use.

Active learning with local patches, its four uncertainties and its stopping rule (000, Algorithm
1.2); random forests that structured learning is compared with (000, Table 1.1); starts for learning
from zero; and scripts that print the tables and draw the figures, run in the folder `benchmarks`:
``python -m papers.losses`` (001, Table 3), ``papers.times_and_bound`` (001, Figure 4 and Theorem
1.1), ``papers.classifiers`` (000, Table 1.1), ``papers.active_learning`` (000, Figures 1.8 and 1.9,
Table 1.3), ``papers.transfer`` (000, Figure 1.10), ``papers.self_paced`` (002) and
``papers.learners`` (003).
"""
