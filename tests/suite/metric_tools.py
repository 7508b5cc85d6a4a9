"""Compares planetree's metrics with those of other tools.

    metric_tools.py CASES.json

Each tool is a function that yields its metrics of a case: the convention and metric that should agree, and either one
value per query or a mean. A difference is an assertion error; tools that are not installed are skipped with a message.
Prints the table of means of docs/metrics.md.
"""
import contextlib
import json
import os
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")
TOLERANCE = 1e-9
AREA_TOLERANCE = 1e-12  # of areas under the ROC curve
SHOWN = "MQ2008 by f18"


class Case:
    def __init__(self, case):
        self.name, _, self.kind = case["name"].partition(", ")
        self.ours = case["ours"]
        queries = case["queries"]
        self.labels = [np.array(query["labels"]) for query in queries]
        self.scores = [np.array(query["scores"]) for query in queries]
        self.documents = [query["documents"] for query in queries]
        self.weights = np.array([query["weight"] for query in queries])
        self.sizes = [len(labels) for labels in self.labels]
        self.all_labels = np.concatenate(self.labels)
        self.all_scores = np.concatenate(self.scores)
        self.groups = np.repeat(np.arange(len(queries)), self.sizes)
        self.empty = np.array([labels.max() <= 0 for labels in self.labels])
        # Queries whose order does not depend on an unstable sort, which is stable for up to 15 documents.
        distinct = [len(np.unique(scores + 0.0)) == len(scores) for scores in self.scores]
        self.settled = np.array(distinct) | (np.array(self.sizes) <= 15)

    def part(self, keep):
        """Labels, scores and groups of the selected queries."""
        rows = np.repeat(keep, self.sizes)
        return self.all_labels[rows], self.all_scores[rows], self.groups[rows]


@contextlib.contextmanager
def quiet():
    """Hides the output of C++ libraries."""
    sys.stdout.flush()
    kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nothing)


def unweighted_empty(case, weighted):
    """LightGBM and XGBoost use weight 1 for an empty query in the sum of NDCG, but its own weight in the divisor."""
    return weighted + (case.weights[case.empty] - 1).sum() / case.weights.sum()


def lightgbm(case):
    import lightgbm as lgb

    if case.kind == "halved":
        return
    for weights in None, np.repeat(case.weights, case.sizes):
        data = lgb.Dataset(
            np.zeros((len(case.all_labels), 1)), case.all_labels, group=case.sizes, weight=weights,
            init_score=case.all_scores,
        )
        settings = {"objective": "none", "metric": ["ndcg", "map"], "eval_at": [1, 3, 5, 10], "verbose": -1}
        with quiet():
            found = {name: value for _, name, value, *_ in lgb.Booster(settings, data).eval_train()}
        if weights is None:
            for metric in "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map@3", "map@10":
                yield "lightgbm", metric, "mean", found[metric]
        else:
            for metric in "ndcg@1", "ndcg@10":
                yield "lightgbm", metric, "weighted", unweighted_empty(case, found[metric])
            yield "lightgbm", "map@10", "weighted", found["map@10"]


def xgboost(case):
    import xgboost as xgb

    if case.kind == "halved":
        return
    pairs = {"ndcg": "ndcg", "ndcg@1": "ndcg@1", "ndcg@5": "ndcg@5", "ndcg@10": "ndcg@10"}
    without = {"ndcg@10-": "ndcg@10", "ndcg-": "ndcg"}
    if case.kind == "binary":
        pairs |= {"map": "map", "map@3": "map@3", "map@10": "map@10", "pre": "p", "pre@5": "p@5", "pre@10": "p@10"}
        without |= {"map@10-": "map@10"}
    for weights in None, case.weights:
        data = xgb.DMatrix(np.zeros((len(case.all_labels), 1)), case.all_labels, base_margin=case.all_scores)
        data.set_group(case.sizes)
        if weights is not None:
            data.set_weight(weights)
        settings = {"eval_metric": [*pairs, *without], "objective": "rank:ndcg", "verbosity": 0}
        text = xgb.Booster(settings, [data]).eval_set([(data, "d")], 0)
        found = {word.split(":")[0][2:]: float(word.split(":")[1]) for word in text.split("\t")[1:]}
        for theirs, metric in pairs.items():
            if weights is None:
                yield "xgboost", metric, "mean", found[theirs]
            elif metric.startswith("ndcg"):
                yield "xgboost", metric, "weighted", unweighted_empty(case, found[theirs])
            else:
                yield "xgboost", metric, "weighted", found[theirs]
        for theirs, metric in without.items():
            yield "xgboost,empty=0", metric, "mean" if weights is None else "weighted", found[theirs]


def catboost(case):
    from catboost.utils import eval_metric

    pairs = {
        "NDCG": ("catboost", "ndcg"), "NDCG:top=1": ("catboost", "ndcg@1"), "NDCG:top=10": ("catboost", "ndcg@10"),
        "NDCG:top=10;type=Exp": ("catboost,gain=exp2", "ndcg@10"),
        "NDCG:top=5;type=Exp;denominator=Position": ("catboost,gain=exp2,discount=power:1", "ndcg@5"),
        "DCG": ("catboost", "dcg"), "DCG:top=5": ("catboost", "dcg@5"), "MRR": ("catboost", "mrr"),
        "MRR:top=3": ("catboost", "mrr@3"), "PrecisionAt:top=1": ("catboost", "p@1"),
        "PrecisionAt:top=10": ("catboost", "p@10"), "RecallAt:top=5": ("catboost", "recall@5"),
        "RecallAt:top=10": ("catboost", "recall@10"), "MAP": ("catboost", "map"), "MAP:top=3": ("catboost", "map@3"),
        "MAP:top=10": ("catboost", "map@10"),
    }
    if case.kind:
        pairs |= {"ERR": ("catboost", "err"), "ERR:top=5": ("catboost", "err@5")}
    for theirs, (convention, metric) in pairs.items():
        value = eval_metric(case.all_labels, case.all_scores, theirs, group_id=case.groups, thread_count=1)[0]
        yield convention, metric, "mean", value
        if metric.startswith(("ndcg", "dcg", "err", "mrr")):  # other metrics ignore weights
            weights = np.repeat(case.weights, case.sizes)
            value = eval_metric(
                case.all_labels, case.all_scores, theirs, group_id=case.groups, group_weight=weights, thread_count=1
            )[0]
            yield convention, metric, "weighted", value


def ydf(case):
    import ydf

    def evaluated(keep, depth):
        labels, scores, groups = case.part(keep)
        return ydf.evaluate_predictions(
            scores.astype(np.float32), labels.astype(np.float32), ydf.Task.RANKING, ranking_groups=groups,
            ndcg_truncation=depth, mrr_truncation=depth, map_truncation=depth,
        ).to_dict()

    everything = np.full(len(case.sizes), True)
    for depth in 3, 10:
        if case.kind != "halved":  # its gains of fractional labels are float32
            yield "ydf", f"ndcg@{depth}", "mean", evaluated(everything, depth)["ndcg"]
        yield "ydf", f"map@{depth}", case.settled, evaluated(case.settled, depth)["map"]
    yield "ydf", "mrr@3", case.settled, evaluated(case.settled, 3)["mrr"]


def sklearn(case):
    from sklearn.metrics import average_precision_score, dcg_score, ndcg_score, roc_auc_score, roc_curve

    if case.kind and case.name.startswith("MQ2008"):  # it takes a millisecond per query
        return

    def by_query(value, binary=False):
        values = []
        for labels, scores in zip(case.labels, case.scores):
            try:
                values.append(float(value(labels > 0.5 if binary else labels, scores)))
            except ValueError:  # queries with one document
                values.append(None)
        return values

    def two(function, **more):
        return lambda labels, scores: function([labels], [scores], **more)

    def partial(labels, scores):
        if labels.all() or not labels.any():
            return np.nan
        wrong, right, _ = roc_curve(labels, scores, drop_intermediate=False)
        inside = wrong <= 0.3
        at_end = np.interp(0.3, wrong, right) if 0.3 not in wrong else right[inside][-1]
        return np.trapezoid([*right[inside], at_end], [*wrong[inside], 0.3])

    yield "sklearn", "ndcg", "values", by_query(two(ndcg_score))
    yield "sklearn", "ndcg@5", "values", by_query(two(ndcg_score, k=5))
    yield "sklearn", "ndcg@10", "values", by_query(two(ndcg_score, k=10))
    yield "sklearn", "dcg", "values", by_query(two(dcg_score))
    yield "sklearn", "dcg@5", "values", by_query(two(dcg_score, k=5))
    if case.kind == "halved":  # relevance is not comparable there
        return
    yield "sklearn", "map", "values", by_query(average_precision_score, binary=True)
    for metric, value in ("auc", roc_auc_score), ("pauc@0-30", partial):
        values = by_query(value, binary=True)
        yield "sklearn", metric, "values", values
        yield "planetree", metric, "values", values
    labels, scores = np.concatenate(case.labels) > 0.5, np.concatenate(case.scores)
    if labels.all() or not labels.any():
        return
    for kind, weights in ("mean", None), ("weighted", np.repeat(case.weights, case.sizes)):
        pooled = roc_auc_score(labels, scores, sample_weight=weights)
        for convention in "sklearn", "planetree", "mohan-cost,relevant=1":
            if convention in case.ours:
                yield convention, "auc_pooled", kind, float(pooled)
        for percent in 30, 5:
            most = percent / 100
            standardised = roc_auc_score(labels, scores, sample_weight=weights, max_fpr=most)
            area = most * most / 2 + (2 * standardised - 1) * (most - most * most / 2)
            yield "sklearn,pauc=standardised", f"pauc_pooled@0-{percent}", kind, float(standardised)
            yield "planetree", f"pauc_pooled@0-{percent}", kind, float(area)


def scipy(case):
    from scipy.stats import kendalltau

    yield "planetree", "tau", "values", [
        float(kendalltau(labels, scores).statistic) for labels, scores in zip(case.labels, case.scores)
    ]
    inverted = []
    for labels, scores in zip(case.labels, case.scores):
        higher = labels[:, None] > labels[None, :]
        difference = scores[:, None] - scores[None, :]
        inverted.append(float((higher & (difference < 0)).sum() + 0.5 * (higher & (difference == 0)).sum()))
    yield "planetree", "inversions", "values", inverted


def as_trec(case):
    qrels = {str(q): dict(zip(d, map(int, l))) for q, (d, l) in enumerate(zip(case.documents, case.labels))}
    run = {str(q): dict(zip(d, map(float, s))) for q, (d, s) in enumerate(zip(case.documents, case.scores))}
    return qrels, run


def pytrec_eval(case):
    import pytrec_eval as trec

    if case.kind == "halved":
        return
    names = {
        "ndcg": "ndcg", "ndcg_cut_1": "ndcg@1", "ndcg_cut_3": "ndcg@3", "ndcg_cut_5": "ndcg@5",
        "ndcg_cut_10": "ndcg@10", "map": "map", "map_cut_3": "map@3", "map_cut_10": "map@10", "recip_rank": "mrr",
        "P_1": "p@1", "P_5": "p@5", "P_10": "p@10", "recall_5": "recall@5", "recall_10": "recall@10",
    }
    qrels, run = as_trec(case)
    asked = {"ndcg", "ndcg_cut.1,3,5,10", "map", "map_cut.3,10", "recip_rank", "P.1,5,10", "recall.5,10"}
    found = trec.RelevanceEvaluator(qrels, asked).evaluate(run)
    for theirs, metric in names.items():
        yield "trec", metric, "values", [found[query][theirs] for query in run]


def ir_measures(case):
    import ir_measures
    from ir_measures import AP, ERR, RR, P, R, nDCG

    if case.kind == "halved":
        return
    exponential = nDCG(dcg="exp-log2")
    names = {
        nDCG: ("trec", "ndcg"), nDCG @ 10: ("trec", "ndcg@10"), AP: ("trec", "map"), AP @ 3: ("trec", "map@3"),
        RR: ("trec", "mrr"), P @ 5: ("trec", "p@5"), R @ 10: ("trec", "recall@10"),
        exponential @ 5: ("gdeval", "ndcg@5"), exponential @ 10: ("gdeval", "ndcg@10"),
        ERR @ 5: ("gdeval", "err@5"), ERR @ 10: ("gdeval", "err@10"),
    }
    qrels, run = as_trec(case)
    found = {}
    for value in ir_measures.iter_calc(list(names), qrels, run):
        found.setdefault(value.measure, {})[value.query_id] = value.value
    for theirs, (convention, metric) in names.items():
        # gdeval prints five digits.
        digits = "five digits" if convention == "gdeval" else "values"
        yield convention, metric, digits, [found[theirs].get(query) for query in run]


def ranx(case):
    from ranx import Qrels, Run, evaluate

    if case.kind == "halved":
        return
    names = {
        "ndcg": "ndcg", "ndcg@5": "ndcg@5", "ndcg@10": "ndcg@10", "map": "map", "map@3": "map@3", "mrr": "mrr",
        "mrr@3": "mrr@3", "precision@5": "p@5", "precision@10": "p@10", "recall@5": "recall@5", "dcg@5": "dcg@5",
    }
    qrels, run = as_trec(case)
    found = evaluate(Qrels(qrels), Run(run), list(names), return_mean=False)
    order = {query: place for place, query in enumerate(sorted(qrels))}
    for theirs, metric in names.items():
        values = [float(found[theirs][order[query]]) for query in run]
        yield "ranx", metric, "values", [value if keep else None for value, keep in zip(values, case.settled)]


TOOLS = [lightgbm, xgboost, catboost, ydf, sklearn, scipy, pytrec_eval, ir_measures, ranx]


def far_apart(ours, theirs, within):
    """Yields the queries whose values differ. `None` means that the tool has no value."""
    for place, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        if their is None:
            continue
        if our is None or np.isnan(their):
            if not (our is None and np.isnan(their)):
                yield place, our, their
        elif abs(our - their) > within * max(1.0, abs(their)):
            yield place, our, their


def table_entry(tool, theirs, ours):
    """The tool's mean, for the table."""
    known = [place for place, their in enumerate(theirs) if their is not None]
    their, our = (np.mean([values[place] for place in known]) for values in (theirs, ours))
    if len(known) == len(theirs):
        return f"{tool} {their:.6f}"
    return f"{tool} {their:.6f} over {len(known)} queries, as planetree: {our:.6f}"


def compare(cases):
    faults, shown = [], {}
    for tool in TOOLS:
        compared = 0
        try:
            for case in cases:
                for convention, metric, kind, theirs in tool(case):
                    ours = case.ours[convention][metric]
                    within = AREA_TOLERANCE if "auc" in metric else TOLERANCE
                    if isinstance(kind, np.ndarray):  # the mean over the selected queries
                        said, theirs = [np.mean(np.array(ours["values"])[kind])], [theirs]
                    elif kind in ("mean", "weighted"):
                        said, theirs = [ours[kind]], [theirs]
                    else:
                        said = ours["values"]
                        within = 5.1e-6 if kind == "five digits" else within
                    different = list(far_apart(said, theirs, within))
                    compared += len(theirs)
                    if different:
                        faults.append(
                            f"{tool.__name__}, {case.name} {case.kind}: {convention} {metric}: "
                            f"{len(different)} differ, first {different[0]}"
                        )
                    if case.name == SHOWN and not case.kind and metric == "ndcg@10" and str(kind) != "weighted":
                        shown.setdefault(convention, []).append(table_entry(tool.__name__, theirs, said))
        except ModuleNotFoundError as missing:
            print(f"SKIPPED: {tool.__name__}: {missing}", file=sys.stderr)
            continue
        print(f"{tool.__name__}: {compared} values compared")
    for case in cases:
        if case.name == SHOWN and not case.kind:
            means = sorted((case.ours[convention]["ndcg@10"]["mean"], convention) for convention in case.ours)
            for mean, convention in means:
                print(f"| `{convention}` | {mean:.6f} | {', '.join(shown.get(convention, []))} |")
    assert not faults, "\n".join(faults)


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        compare([Case(case) for case in json.load(file)])
