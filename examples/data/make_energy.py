#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes energy.csv, the data of the training examples: the heating energy of buildings that do not exist.

A row has six features between -1 and 1, and a target that depends on them, with noise. The formula and the
seed are always the same, so anybody can make the same file again.
"""

import math
import pathlib
import random

NAMES = ["area", "glazing", "age", "insulation", "height", "orientation", "energy"]
ROWS = 1200


def energy(area, glazing, age, insulation, height, orientation):
    losses = 0.5 * glazing * (1 - insulation) + 0.3 * age + 0.2 * area * height
    return math.tanh(losses + 0.4 * math.sin(2 * orientation) * glazing)


def main():
    generator = random.Random(1973)
    lines = [",".join(NAMES)]
    for _ in range(ROWS):
        features = [round(generator.uniform(-1, 1), 4) for _ in NAMES[:-1]]
        target = energy(*features) + generator.gauss(0, 0.05)
        lines.append(",".join(f"{value:.4f}" for value in [*features, target]))
    path = pathlib.Path(__file__).with_name("energy.csv")
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
