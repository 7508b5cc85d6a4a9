"""Models made of scikit-learn and LightGBM models; prints NDCG@10 on test data, one line per seed.

    plans.py KIND TRAIN TEST TREES BOOSTED SEEDS

KIND: ordinal (one RandomForestClassifier of "label at most c" per grade c below the highest; the score is the expected
grade), softmax (LightGBM's multiclass; the score is the expected grade), igbrt (a RandomForestRegressor, then LightGBM on what it leaves unexplained, by init_score). TREES are those of
the forest, BOOSTED those of LightGBM. Files and NDCG as in forest.py.
"""
import sys

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from forest import ndcg, read


def ordinal(x, y, tx, trees, _boosted, seed):
    score = np.full(len(tx), y.max())
    for grade in np.unique(y)[:-1]:
        forest = RandomForestClassifier(n_estimators=trees, max_features=0.1, n_jobs=2, random_state=seed)
        score -= forest.fit(x, y <= grade).predict_proba(tx)[:, 1]
    return score


def softmax(x, y, tx, _trees, boosted, seed):
    import lightgbm

    grades, classes = np.unique(y, return_inverse=True)
    settings = dict(objective="multiclass", num_class=len(grades), learning_rate=0.1, num_leaves=8, min_data_in_leaf=20,
                    min_sum_hessian_in_leaf=0, bagging_fraction=0.7, bagging_freq=1, num_threads=2, verbose=-1, seed=seed)
    trained = lightgbm.train(settings, lightgbm.Dataset(x, classes), num_boost_round=boosted)
    return trained.predict(tx) @ grades


def igbrt(x, y, tx, trees, boosted, seed):
    import lightgbm

    forest = RandomForestRegressor(n_estimators=trees, max_features=0.1, n_jobs=2, random_state=seed).fit(x, y)
    settings = dict(objective="regression", learning_rate=0.1, num_leaves=8, max_depth=3, min_data_in_leaf=1,
                    min_sum_hessian_in_leaf=0, boost_from_average=False, num_threads=2, verbose=-1, seed=seed)
    data = lightgbm.Dataset(x, y, init_score=forest.predict(x))
    trained = lightgbm.train(settings, data, num_boost_round=boosted)
    return forest.predict(tx) + trained.predict(tx, raw_score=True)


def main():
    kind, train, test, trees, boosted, seeds = sys.argv[1:]
    x, y, _ = read(train)
    tx, ty, tq = read(test)
    width = max(x.shape[1], tx.shape[1])
    x, tx = (np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in (x, tx))
    for seed in range(int(seeds)):
        print(ndcg(ty, globals()[kind](x, y, tx, int(trees), int(boosted), seed), tq))


if __name__ == "__main__":
    main()
