"""Types of the training parameters. Written by tests/write_parameters.py; a test compares it with the parameters."""

from typing import Literal, Mapping, Sequence, TypedDict


class Parameters(TypedDict, total=False):
    """Training parameters. docs/train.md describes them."""

    ensemble: Literal["boost", "bag", "linear", "svm", "ranksvm", "adarank", "coordinate-ascent", "net"] | None
    # Model type
    boosting: Literal["boost", "bag", "linear", "svm", "ranksvm", "adarank", "coordinate-ascent", "net"] | None
    boosting_type: Literal["boost", "bag", "linear", "svm", "ranksvm", "adarank", "coordinate-ascent", "net"] | None
    booster: Literal["boost", "bag", "linear", "svm", "ranksvm", "adarank", "coordinate-ascent", "net"] | None
    objective: Literal["squared", "logistic", "ranknet", "lambdarank", "gbrank", "xendcg", "listnet", "query_rmse", "rankboost", "softmax_classes"] | None
    # Training objective: regression on the labels, a pairwise or listwise ranking loss, or a classification of the grades
    objective_type: Literal["squared", "logistic", "ranknet", "lambdarank", "gbrank", "xendcg", "listnet", "query_rmse", "rankboost", "softmax_classes"] | None
    application: Literal["squared", "logistic", "ranknet", "lambdarank", "gbrank", "xendcg", "listnet", "query_rmse", "rankboost", "softmax_classes"] | None
    app: Literal["squared", "logistic", "ranknet", "lambdarank", "gbrank", "xendcg", "listnet", "query_rmse", "rankboost", "softmax_classes"] | None
    loss: Literal["squared", "logistic", "ranknet", "lambdarank", "gbrank", "xendcg", "listnet", "query_rmse", "rankboost", "softmax_classes"] | None
    lambda_metric: str | int | float | Sequence[float] | Sequence[str] | None
    # LambdaRank only: metric whose change under a swap weights each pair; any metric except rmse
    lambdarank_target: str | int | float | Sequence[float] | Sequence[str] | None
    truncation_level: int | None
    # Pairwise objectives: use pairs with at least one document in the top K by score; 0 uses all pairs
    lambdarank_truncation_level: int | None
    lambdarank_num_pair_per_sample: int | None
    max_position: int | None
    sigma: float | None
    # RankNet and LambdaRank: steepness of the sigmoid in the pairwise loss
    sigmoid: float | None
    lambda_norm: bool | None
    # Pairwise objectives: normalise pair weights by score distance, and the gradients of each query by their total
    lambdarank_norm: bool | None
    lambdarank_normalization: bool | None
    margin: float | None
    # GBRANK: required score margin between the two documents of a pair
    tau: float | None
    label_gain: str | int | float | Sequence[float] | Sequence[str] | None
    # LambdaRank on NDCG and listwise trees: gain of each label, as exp2, linear, a table such as 0,1,3,7,15, or an expression
    gain: str | int | float | Sequence[float] | Sequence[str] | None
    relevant_from: float | None
    # Minimum label that counts as relevant, for the logistic objective and for LambdaRank on binary metrics such as MAP
    unbiased: bool | None
    # RankNet and LambdaRank: treat labels as clicks and correct for position bias, using the position column
    lambdarank_unbiased: bool | None
    bias_norm: float | None
    # Unbiased only: regularisation of the position bias; larger values weaken the correction
    lambdarank_bias_norm: float | None
    base_score: str | int | float | Sequence[float] | Sequence[str] | None
    # Initial score: auto (the best constant), a number, or feature:NAME for the values of that feature
    init_score: str | int | float | Sequence[float] | Sequence[str] | None
    start_score: str | int | float | Sequence[float] | Sequence[str] | None
    candidates: Literal["static", "streaming", "exact", "random"] | None
    # Source of candidate splits: fixed bins, centroids recomputed per node, every value, or (forests) one random value
    splits: Literal["static", "streaming", "exact", "random"] | None
    criterion: Literal["variance", "entropy", "gini", "ndcg"] | None
    # Forests: split criterion; entropy and gini treat labels as classes, ndcg scores the ranking of whole queries
    split_criterion: Literal["variance", "entropy", "gini", "ndcg"] | None
    redraw_features: bool | None
    # Forests: if all features sampled for a node are constant in it, sample more; false makes the node a leaf
    leaf_score: Literal["expected", "square", "exp2"] | None
    # Forests that treat labels as classes: leaf value, the mean of the labels c (expected), of c^2 (square) or of 2^c (exp2)
    listwise_metric: str | int | float | Sequence[float] | Sequence[str] | None
    # Listwise trees: metric whose expected value chooses splits; ndcg is the fastest
    queries_per_node: float | None
    # Listwise trees: fraction of the queries sampled for the gains of each node
    listwise_levels: int | None
    # Forests: number of top levels split by the expected NDCG of whole queries; deeper levels use criterion
    leaf_order: Literal["breadth", "random", "biggest", "most_relevant", "depth"] | None
    # Listwise trees: order in which leaves are split; the gain of a split depends on all other leaves
    listwise_discount: str | int | float | Sequence[float] | Sequence[str] | None
    # Listwise trees: discount of a document's gain by rank, as log2, log2^ALPHA, power:BETA or letor
    listwise_truncation: int | None
    # Listwise trees: number of top ranks that contribute to NDCG; 0 for all
    pairs_per_document: int | None
    # Forests: train on the feature differences of document pairs, with at most this many pairs per document; 0 trains on single documents
    num_trees: int | None
    # Maximum number of trees, of rounds of a linear model, or of epochs of a net
    num_iterations: int | None
    n_estimators: int | None
    num_boost_round: int | None
    num_round: int | None
    num_rounds: int | None
    n_iter: int | None
    iterations: int | None
    num_iteration: int | None
    nrounds: int | None
    trees: int | None
    epochs: int | None
    learning_rate: float | None
    # Shrinkage factor applied to the leaf values of each tree, or size of the steps of a net
    eta: float | None
    shrinkage_rate: float | None
    lr: float | None
    max_depth: int | None
    # Maximum depth of a tree: splits on the way to a leaf
    depth: int | None
    num_leaves: int | None
    # Maximum leaves per tree; if set, trees grow best-first, otherwise level by level
    max_leaves: int | None
    max_leaf_nodes: int | None
    num_leaf: int | None
    leaves: int | None
    min_data_in_leaf: int | None
    # Minimum rows per leaf
    min_data: int | None
    min_child_samples: int | None
    min_samples_leaf: int | None
    min_examples: int | None
    min_data_to_split: int | None
    # Minimum rows that a node needs to be split
    min_samples_split: int | None
    min_rows: int | None
    min_gain: float | None
    # Minimum gain of a split
    min_gain_to_split: float | None
    min_split_gain: float | None
    gamma: float | None
    min_split_loss: float | None
    split_by: Literal["newton", "gradient", "sum"] | None
    # Boosting: score of splits, newton (G^2 / (H + lambda_l2)), gradient (least squares on the gradients, G^2 / n) or sum (G^2, for RankBoost)
    leaf: Literal["newton", "mean", "weak_ranker"] | None
    # Boosting: value of leaves, newton (G / (H + lambda_l2)), mean (the mean gradient, G / n) or weak_ranker (the weight of a weak ranker of RankBoost on the right side)
    lambda_l2: float | None
    # L2 regularisation of leaf values, or of the weights of a linear model or net
    reg_lambda: float | None
    l2_regularization: float | None
    normalise_features: Literal["query", "z", "minmax", "none"] | None
    # Normalise features by query (minimum 0, maximum 1), over all training rows by z (mean 0, deviation 1) or minmax (minimum 0, maximum 1), or not at all; trees are the same with z, minmax and none
    normalize_features: Literal["query", "z", "minmax", "none"] | None
    feature_normalisation: Literal["query", "z", "minmax", "none"] | None
    min_sum_hessian: float | None
    # Minimum sum of hessians per leaf; with squared error, the hessian of a row is its weight
    min_sum_hessian_in_leaf: float | None
    min_child_weight: float | None
    min_sum_hessian_per_leaf: float | None
    max_bin: int | None
    # Maximum bins per feature (static, random: 2 to 255; forests: 0 keeps all values), or centroids per feature and node (streaming: 2 to 10000)
    max_bins: int | None
    b: int | None
    bins: int | None
    border_count: int | None
    value_groups: int | None
    # Streaming only: maximum groups of neighbouring values per feature, 2 to 255; 0 keeps all values distinct
    workers: int | None
    # Streaming only: number of workers; each builds histograms of its queries, which are then merged
    num_workers: int | None
    bagging_fraction: float | None
    # Fraction of rows or queries sampled for each tree
    subsample: float | None
    bagging: float | None
    sub_row: float | None
    row_fraction: float | None
    bagging_by: Literal["rows", "queries"] | None
    # Unit of sampling: single rows, or queries with all their rows
    sampling: Literal["rows", "queries"] | None
    bagging_per: Literal["tree", "run"] | None
    # Boosting: draw a new sample of rows or queries for every tree, or one for the whole run (bagged boosting)
    queries_per_tree: int | None
    # Number of queries sampled for each tree, instead of a fraction
    bootstrap: bool | None
    # Forests: sample rows or queries with replacement
    with_replacement: bool | None
    feature_fraction: float | None
    # Fraction of features sampled for each tree
    colsample_bytree: float | None
    sub_feature: float | None
    features_per_node: str | int | float | Sequence[float] | Sequence[str] | None
    # Number of features sampled for each node from those of its tree; a fraction is of all features
    max_features: str | int | float | Sequence[float] | Sequence[str] | None
    colsample_bynode: str | int | float | Sequence[float] | Sequence[str] | None
    feature_fraction_bynode: str | int | float | Sequence[float] | Sequence[str] | None
    missing: Literal["zero", "one", "mean", "median", "low", "high", "learned", "branch"] | None
    # Replacement of missing values. low and high keep them, smaller or larger than all others: every split sends them left or right. learned keeps them, too: each split sends them to the side with the higher gain, and linear models and nets give them the normalised value 0. branch gives them a branch of their own: a split has three children if rows of its node have missing values
    seed: int | None
    # Random seed
    random_seed: int | None
    random_state: int | None
    early_stopping_rounds: int | None
    # Stop after this many rounds without improvement of the first metric on the first validation set
    early_stopping: int | None
    early_stopping_round: int | None
    tree_strength: bool | None
    # Forests: also log the metrics of each single tree, under NAME.tree for each validation set NAME
    metric: str | int | float | Sequence[float] | Sequence[str] | None
    # Metrics computed after each round; the first one drives early stopping
    metrics: str | int | float | Sequence[float] | Sequence[str] | None
    eval_metric: str | int | float | Sequence[float] | Sequence[str] | None
    convention: str | int | float | Sequence[float] | Sequence[str] | None
    # Rules by which metrics are computed: the name of a tool (lightgbm, xgboost, trec, letor4, ...), and switches; see planetree evaluate --help
    label_map: str | int | float | Sequence[float] | Sequence[str] | None
    # Labels that replace those of training and validation data, such as 0,1,2=0;3,4=1; a label that is not listed is an error
    query_fraction: float | None
    # Shorthand for bagging_fraction with bagging_by=queries
    cost_lambda: str | int | float | Sequence[float] | Sequence[str] | None
    # With --costs: factor of the costs of features, in units of gain; the split with the highest gain minus cost_lambda times the cost of its feature is chosen. 0 ignores costs; auto is 1
    cost_batch: str | int | float | Sequence[float] | Sequence[str] | None
    # Forests with --costs: trees per batch; features that a batch uses are free from the next batch on; independent of the number of threads. auto is 8
    train_metric: str | int | float | Sequence[float] | Sequence[str] | None
    # AdaRank and Coordinate Ascent: metric to optimise on the training data, such as ndcg@10, map or err
    tolerance: float | None
    # AdaRank: training ends when a round would lower train_metric by at least this; Coordinate Ascent: a restart ends when a sweep over all features gains less than this
    svm_c: str | int | float | Sequence[float] | Sequence[str] | None
    # SVMs: weight of the mean loss against half the squared weights; auto tries 0.01 to 100, one value per round, and keeps the best by the first metric on the first validation set
    monotone_constraints: str | Sequence[int] | Mapping[str, int] | None
    # Trees: direction in which scores may change when the values of a feature rise, 1 (they never fall), -1 (they never rise) or 0 (no constraint)
    mc: str | Sequence[int] | Mapping[str, int] | None
    monotone_constraint: str | Sequence[int] | Mapping[str, int] | None
    monotonic_cst: str | Sequence[int] | Mapping[str, int] | None
    undersample: float | None
    # SVM of relevance: nonrelevant documents per relevant one, drawn at random (seed); 0 uses all of them
    svm_tolerance: float | None
    # Ranking SVM: a search ends after a Newton step that was predicted to lower the objective by at most this fraction
    max_repeats: int | None
    # AdaRank: maximum rounds in a row that select the same feature
    line_steps: int | None
    # Coordinate Ascent: steps of a line search in each direction, each twice as long as the one before
    hidden_layers: str | int | float | Sequence[float] | Sequence[str] | None
    # Nets: units of each hidden layer, such as 10 or 32,16; none for a linear model
    hidden_layer_sizes: str | int | float | Sequence[float] | Sequence[str] | None
    hidden: str | int | float | Sequence[float] | Sequence[str] | None
    activation: Literal["tanh", "relu", "logistic"] | None
    # Nets: function of hidden units
    optimiser: Literal["adam", "sgd"] | None
    # Nets: steps by Adam, or by the plain gradient (sgd)
    optimizer: Literal["adam", "sgd"] | None
    solver: Literal["adam", "sgd"] | None
    batch_queries: int | None
    # Nets: queries per step, drawn again in every epoch; 0 takes all queries at once
    batch_size: int | None
    restarts: int | None
    # Nets: train this many nets from different initial weights side by side, and keep the best one after each epoch
    target: str | int | float | Sequence[float] | Sequence[str] | None
    # What is learned: labels, the probability of every grade (ordinal: one part per grade below the highest, squared error on 0 and 1), or of the labels up to one grade (at_most:GRADE)
    class_scores: str | int | float | Sequence[float] | Sequence[str] | None
    # target=ordinal, objective=softmax_classes: score of each grade; a document's score is its expected value
    class_weights: str | int | float | Sequence[float] | Sequence[str] | None
    # target=ordinal: weights of the parts, from class_scores, from least squares after training, or as given
    runs: str | int | float | Sequence[float] | Sequence[str] | None
    # Number of runs with different seeds, grown side by side, whose scores are averaged
    start_scores: str | int | float | Sequence[float] | Sequence[str] | None
    # Stages: training scores that stage 2 starts from: those of stage 1, or its out-of-bag scores (oob)
