"""Compares constrained boosting with XGBoost and LightGBM: the training error after every round, of 30 trees of depth 5.

    monotone.py xgboost|lightgbm DATASET ROUNDS TOLERANCE CONSTRAINTS

The errors of training without constraints must differ by more than the tolerance.
"""
import sys

import numpy as np

from dataset import read_zero_filled
from reference import check_close, course

TREES = 30


def xgboost(x, y, constraints):
    """The training errors of XGBoost, whose exact method tries all midpoints."""
    import xgboost

    settings = dict(
        tree_method="exact", max_depth=5, eta=0.2, min_child_weight=20, reg_lambda=0.0, gamma=0.0, base_score=float(np.mean(y)),
        monotone_constraints=f"({','.join(map(str, constraints))})", nthread=1)
    log = {}
    data = xgboost.DMatrix(x, y)
    xgboost.train(settings, data, TREES, evals=[(data, "train")], evals_result=log, verbose_eval=False)
    return np.array(log["train"]["rmse"])


def lightgbm(x, y, constraints):
    """The training errors of LightGBM, whose trees grow best-first, but have room for all leaves of depth 5."""
    import lightgbm

    settings = dict(
        objective="regression", metric="rmse", max_depth=5, num_leaves=32, learning_rate=0.2, min_data_in_leaf=20,
        min_sum_hessian_in_leaf=0.0, monotone_constraints=constraints, monotone_constraints_method="basic", verbose=-1,
        num_threads=1, min_data_in_bin=1, feature_pre_filter=False, bin_construct_sample_cnt=10_000_000)
    log = {}
    data = lightgbm.Dataset(x, y, params=settings)
    callbacks = [lightgbm.record_evaluation(log)]
    lightgbm.train(settings, data, TREES, valid_sets=[data], valid_names=["train"], callbacks=callbacks)
    return np.array(log["train"]["rmse"])


if __name__ == "__main__":
    tool, dataset, rounds, tolerance, constraints = sys.argv[1:]
    x, y, _, _ = read_zero_filled(dataset)
    errors = dict(xgboost=xgboost, lightgbm=lightgbm)[tool]
    constraints = [int(number) for number in constraints.split(",")]
    ours = course(rounds, "train", "rmse")
    free = errors(x, y, [0] * len(constraints))
    assert abs(ours[-1] - free[-1]) > 2 * float(tolerance) * free[-1], "the constraints change nothing"
    check_close(ours, errors(x, y, constraints), tolerance, f"{tool}, round")
