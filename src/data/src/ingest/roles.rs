//! Assigns a role to each column of an input table: query id, label, document id, weight, position or feature.

use super::feature_choice::FeatureChoice;
use planetree_base::error::{Error, Result};

/// The role of a column in an input table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ColumnRole {
    /// Query ids.
    Query,
    /// Relevance labels.
    Label,
    /// Document ids.
    Document,
    /// Row weights.
    Weight,
    /// Positions at which the documents were shown.
    Position,
    /// A numeric feature. Contains its index among the features, counted from 0.
    Feature(u32),
    /// A categorical feature, whose categories are replaced by numbers. Contains its index among the features,
    /// counted from 0.
    Category(u32),
    /// A column that is not used.
    Ignored,
}

/// Column options that the user chose. Columns are identified by name, or by a number counted from 0 if the table has
/// no header.
#[derive(Debug, Clone, Default)]
pub struct RoleOptions {
    /// Column of query ids.
    pub query: Option<String>,
    /// Column of labels.
    pub label: Option<String>,
    /// Column of document ids.
    pub document: Option<String>,
    /// Column of weights.
    pub weight: Option<String>,
    /// Column of positions.
    pub position: Option<String>,
    /// Columns to skip: names, or patterns such as `raw_*`, which do not apply to columns with another role.
    pub ignored: Vec<String>,
    /// Features to keep: names or patterns. All other columns without a role are skipped; if empty, none are. A column of
    /// this name is a feature even if weights or positions usually have the name.
    pub features: Vec<String>,
    /// Categorical columns.
    pub categories: Vec<String>,
    /// Columns that are categorical in another dataset. Their categories keep the codes that they have there.
    pub known_categories: Vec<String>,
    /// Index columns of a data frame, according to the file's metadata.
    pub index: Vec<String>,
    /// Index columns to keep as features.
    pub kept: Vec<String>,
    /// Whether columns of weights and positions and columns to skip may be absent, as in a table for validation.
    pub is_partial: bool,
}

/// The usual column names for each role, in order of preference.
const QUERY: &[&str] =
    &["query_id", "qid", "queryid", "query", "group_id", "groupid", "group", "search_id", "srch_id"];
const LABEL: &[&str] = &[
    "label",
    "relevance",
    "rel",
    "grade",
    "target",
    "relevance_label",
    "judgment",
    "judgement",
    "rating",
    "y",
];
const DOCUMENT: &[&str] = &["doc_id", "docid", "document_id", "doc", "document"];
const WEIGHT: &[&str] = &["weight", "sample_weight"];
const POSITION: &[&str] = &["position"];

/// Names of the fixed columns of a dataset, which features cannot have.
const RESERVED: [&str; 5] = ["query_id", "doc_id", "label", "weight", "position"];

/// Names of fixed columns that features may have in a table: in the dataset, `weight` becomes `feature_weight`.
const RENAMED: [&str; 2] = ["weight", "position"];

/// The roles of all columns in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Roles {
    /// One role per column.
    pub columns: Vec<ColumnRole>,
    /// Names of the features.
    pub features: Vec<String>,
    /// Indices of the columns that are skipped because they are the index of a data frame.
    pub index: Vec<usize>,
    /// What else may be the label, if the label was chosen by its name.
    pub ambiguous_label: Option<AmbiguousLabel>,
}

/// Several columns with a usual name of labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AmbiguousLabel {
    /// The column that became the label.
    pub label: String,
    /// The columns that became features.
    pub others: Vec<String>,
}

impl Roles {
    /// Assigns roles to columns, first according to the options, then according to the usual names. `file` is the
    /// name of the table for messages.
    pub(crate) fn by_names(names: &[String], options: &RoleOptions, file: &str) -> Result<Self> {
        let mut columns = vec![None; names.len()];
        let usual: [(Option<&String>, &[&str], ColumnRole); 5] = [
            (options.query.as_ref(), QUERY, ColumnRole::Query),
            (options.label.as_ref(), LABEL, ColumnRole::Label),
            (options.document.as_ref(), DOCUMENT, ColumnRole::Document),
            (options.weight.as_ref(), WEIGHT, ColumnRole::Weight),
            (options.position.as_ref(), POSITION, ColumnRole::Position),
        ];
        for (wanted, _, role) in &usual {
            let may_be_absent =
                options.is_partial && matches!(role, ColumnRole::Weight | ColumnRole::Position);
            if let Some(wanted) = wanted
                && (!may_be_absent || names.contains(wanted))
            {
                columns[find(names, wanted, file)?] = Some(role.clone());
            }
        }
        let ignored = ColumnSelection::find(&options.ignored, names, file, options.is_partial)?;
        for place in &ignored.named {
            columns[*place] = Some(ColumnRole::Ignored);
        }
        let chosen = ColumnSelection::find(&options.features, names, file, false)?;
        let mut categories: Vec<usize> =
            options.categories.iter().map(|name| find(names, name, file)).collect::<Result<_>>()?;
        categories.extend(
            names
                .iter()
                .enumerate()
                .filter(|(_, name)| options.known_categories.contains(name))
                .map(|(place, _)| place),
        );
        for (wanted, spellings, role) in usual {
            if wanted.is_some() {
                continue;
            }
            let place = spellings.iter().find_map(|spelling| {
                names.iter().enumerate().position(|(place, name)| {
                    let is_feature = matches!(role, ColumnRole::Weight | ColumnRole::Position)
                        && chosen.named.contains(&place);
                    columns[place].is_none()
                        && !is_feature
                        && !categories.contains(&place)
                        && name.eq_ignore_ascii_case(spelling)
                })
            });
            // Without a label column, all rows are unlabelled.
            if let Some(place) = place {
                columns[place] = Some(role);
            }
        }
        let kept: Vec<usize> =
            options.kept.iter().map(|name| find(names, name, file)).collect::<Result<_>>()?;
        let is_index = |place: usize| {
            let is_named = options.index.contains(&names[place]) || is_pandas_index(&names[place]);
            is_named
                && !kept.contains(&place)
                && !categories.contains(&place)
                && !chosen.named.contains(&place)
        };
        let is_skipped = |place: usize| {
            let is_chosen = chosen.is_empty() || chosen.contains(place) || categories.contains(&place);
            ignored.matched.contains(&place) || !is_chosen
        };
        // The label that was chosen by its name, and the columns that may be labels as well.
        let label = columns.iter().position(|role| *role == Some(ColumnRole::Label));
        let label = label.filter(|_| options.label.is_none()).map(|place| names[place].clone());
        let may_be_label = |place: usize| {
            let is_chosen = chosen.named.contains(&place) || categories.contains(&place);
            !is_chosen && LABEL.iter().any(|label| names[place].eq_ignore_ascii_case(label))
        };
        let (mut features, mut index, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let columns = columns
            .into_iter()
            .enumerate()
            .map(|(place, role)| {
                role.unwrap_or_else(|| {
                    // No feature has a reserved name, so a table for validation needs no such column.
                    let name = names[place].as_str();
                    let is_renamed = RENAMED.contains(&name) && chosen.named.contains(&place);
                    let is_unused = options.is_partial && RESERVED.contains(&name) && !is_renamed;
                    if is_unused || is_skipped(place) {
                        return ColumnRole::Ignored;
                    }
                    if is_index(place) {
                        index.push(place);
                        return ColumnRole::Ignored;
                    }
                    if may_be_label(place) {
                        others.push(name.to_owned());
                    }
                    features.push(if is_renamed { format!("feature_{name}") } else { name.to_owned() });
                    let feature = features.len() as u32 - 1;
                    if categories.contains(&place) {
                        ColumnRole::Category(feature)
                    } else {
                        ColumnRole::Feature(feature)
                    }
                })
            })
            .collect();
        let label = label.filter(|_| !others.is_empty());
        let ambiguous_label = label.map(|label| AmbiguousLabel { label, others });
        let roles = Roles { columns, features, index, ambiguous_label };
        roles.check_names(file)?;
        Ok(roles)
    }

    /// Assigns roles to columns according to a CatBoost column description, which has lines of the form `index <tab>
    /// kind [<tab> name]`.
    pub(crate) fn by_description(text: &str, columns: usize, file: &str, described_by: &str) -> Result<Self> {
        let mut roles = vec![None; columns];
        let mut names = vec![None; columns];
        for (line, row) in text.lines().enumerate().filter(|(_, row)| !row.trim().is_empty()) {
            let fault = |problem: String| {
                Error::place(
                    format_args!("{described_by}:{}", line + 1),
                    problem,
                    "write `column <tab> kind [<tab> name]`, columns counted from 0",
                )
            };
            let mut fields = row.split('\t').map(str::trim);
            let place: usize = match fields.next().map(str::parse) {
                Some(Ok(place)) if place < columns => place,
                Some(Ok(place)) => {
                    return Err(fault(format!(
                        "column {place} is out of range: {file} has {columns} columns"
                    )));
                }
                _ => return Err(fault(format!("found {row:?}, expected a column number"))),
            };
            let kind = fields.next().unwrap_or_default();
            names[place] = fields.next().filter(|name| !name.is_empty()).map(str::to_owned);
            roles[place] = match kind {
                "Num" => None,
                "Categ" => Some(ColumnRole::Category(0)),
                "Label" | "Target" => Some(ColumnRole::Label),
                "GroupId" | "QueryId" => Some(ColumnRole::Query),
                "DocId" | "SampleId" => Some(ColumnRole::Document),
                "Weight" => Some(ColumnRole::Weight),
                "Position" => Some(ColumnRole::Position),
                "Auxiliary" | "GroupWeight" | "SubgroupId" | "Baseline" | "Timestamp" => {
                    Some(ColumnRole::Ignored)
                }
                other => return Err(fault(format!("unknown kind {other:?}"))),
            };
        }
        let mut features = Vec::new();
        let columns = roles
            .into_iter()
            .zip(names)
            .map(|(role, name)| {
                let feature = features.len() as u32;
                let role = match role {
                    None => ColumnRole::Feature(feature),
                    Some(ColumnRole::Category(_)) => ColumnRole::Category(feature),
                    Some(role) => return role,
                };
                features.push(name.unwrap_or_else(|| format!("f{}", feature + 1)));
                role
            })
            .collect();
        let roles = Roles { columns, features, index: Vec::new(), ambiguous_label: None };
        if !roles.has(&ColumnRole::Label) {
            return Err(Error::place(
                described_by,
                "no Label or Target column",
                "add a line with the kind Label, such as `0 <tab> Label`",
            ));
        }
        roles.check_names(described_by)?;
        Ok(roles)
    }

    /// Leaves out the features that the options do not choose.
    pub(super) fn with_chosen_features(mut self, options: &RoleOptions, file: &str) -> Result<Self> {
        let choice = FeatureChoice::find(options, &self.features, file)?;
        let mut places: Vec<Option<u32>> = Vec::with_capacity(self.features.len());
        let mut kept: Vec<String> = Vec::new();
        for (name, is_kept) in self.features.into_iter().zip(&choice.is_kept) {
            places.push(if *is_kept { Some(kept.len() as u32) } else { None });
            if *is_kept {
                kept.push(name);
            }
        }
        self.features = kept;
        for role in &mut self.columns {
            let place = match &*role {
                ColumnRole::Feature(feature) | ColumnRole::Category(feature) => places[*feature as usize],
                _ => continue,
            };
            match (place, role) {
                (Some(place), ColumnRole::Feature(feature) | ColumnRole::Category(feature)) => {
                    *feature = place;
                }
                (_, role) => *role = ColumnRole::Ignored,
            }
        }
        Ok(self)
    }

    /// Returns the name of a column for messages.
    pub(crate) fn name_of(&self, place: usize) -> String {
        match &self.columns[place] {
            ColumnRole::Feature(feature) | ColumnRole::Category(feature) => {
                self.features[*feature as usize].clone()
            }
            ColumnRole::Label => "the label".to_owned(),
            ColumnRole::Weight => "the weight".to_owned(),
            _ => format!("column {}", place + 1),
        }
    }

    /// Checks whether any column has this role.
    pub(crate) fn has(&self, role: &ColumnRole) -> bool {
        self.columns.contains(role)
    }

    /// Returns the roles other than features that occur in the table, in a fixed order.
    pub(crate) fn non_features(&self) -> Vec<&ColumnRole> {
        let non_features = [
            ColumnRole::Query,
            ColumnRole::Label,
            ColumnRole::Document,
            ColumnRole::Weight,
            ColumnRole::Position,
        ];
        non_features.iter().filter_map(|part| self.columns.iter().find(|role| *role == part)).collect()
    }

    /// Returns the name of the first feature that is categorical in one table and numeric in the other.
    pub(crate) fn first_different_kind(&self, other: &Roles) -> Option<&str> {
        (0..self.features.len() as u32)
            .find(|feature| {
                let category = ColumnRole::Category(*feature);
                self.has(&category) != other.has(&category)
            })
            .map(|feature| self.features[feature as usize].as_str())
    }

    /// Fails if feature names are empty, repeated, or reserved for the fixed columns of a dataset.
    fn check_names(&self, file: &str) -> Result<()> {
        check_feature_names(&self.features, file)
    }
}

/// Checks whether this is a name that pandas gives to an unnamed index, such as `__index_level_0__`.
fn is_pandas_index(name: &str) -> bool {
    let level = name.strip_prefix("__index_level_").and_then(|rest| rest.strip_suffix("__"));
    level.is_some_and(|level| !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Fails if a feature name is empty, repeated, or reserved for a fixed column of a dataset.
pub fn check_feature_names(names: &[String], file: &str) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for (place, name) in names.iter().enumerate() {
        let problem = if name.is_empty() {
            format!("feature {} has no name", place + 1)
        } else if RESERVED.contains(&name.as_str()) {
            format!("the feature name {name:?} is reserved")
        } else if !seen.insert(name) {
            format!("the feature name {name:?} is used twice")
        } else {
            continue;
        };
        let remedy = format!("rename the feature, or skip it with --ignore-columns {name:?}");
        return Err(Error::place(file, problem, remedy));
    }
    Ok(())
}

/// Columns that names and patterns select.
#[derive(Default)]
pub(super) struct ColumnSelection {
    /// Columns given by name.
    named: Vec<usize>,
    /// Columns that match a pattern.
    matched: Vec<usize>,
}

impl ColumnSelection {
    /// Finds the columns. Every name must be that of a column, and every pattern must match one, unless `is_partial`.
    pub(super) fn find(wanted: &[String], names: &[String], file: &str, is_partial: bool) -> Result<Self> {
        let mut selection = ColumnSelection::default();
        for wanted in wanted {
            if !wanted.contains(['*', '?', '[']) || names.contains(wanted) {
                match find(names, wanted, file) {
                    Ok(place) => selection.named.push(place),
                    Err(_) if is_partial => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            let pattern = glob::Pattern::new(wanted).map_err(|error| {
                Error::usage(format_args!("{wanted:?}: invalid pattern: {error}"), "check the brackets")
            })?;
            let places = (0..names.len()).filter(|place| pattern.matches(&names[*place]));
            let before = selection.matched.len();
            selection.matched.extend(places);
            if selection.matched.len() == before && !is_partial {
                return Err(Error::usage(
                    format_args!("{file}: no column matches {wanted:?}"),
                    format_args!("the columns are {}", listed(names)),
                ));
            }
        }
        Ok(selection)
    }

    /// Returns the places of all selected columns.
    pub(super) fn places(mut self) -> Vec<usize> {
        self.named.append(&mut self.matched);
        self.named
    }

    fn is_empty(&self) -> bool {
        self.named.is_empty() && self.matched.is_empty()
    }

    fn contains(&self, place: usize) -> bool {
        self.named.contains(&place) || self.matched.contains(&place)
    }
}

fn find(names: &[String], wanted: &str, file: &str) -> Result<usize> {
    names.iter().position(|name| name == wanted).ok_or_else(|| {
        Error::usage(
            format_args!("{file}: there is no column {wanted:?}"),
            format_args!("the columns are {}", listed(names)),
        )
    })
}

/// Returns the error for a table in which no column for the role `role` was found.
pub(crate) fn missing_role(names: &[String], role: &str, file: &str) -> Error {
    let problem = format!("{file}: no {role} column found");
    let mut words = names.iter().flat_map(|name| name.split_whitespace());
    if words.any(|word| word.starts_with("qid:")) {
        return Error::usage(problem, "the file looks like LETOR text: read it with --format letor");
    }
    let remedy = format!("choose one with --{role}-column; the columns are {}", listed(names));
    Error::usage(problem, remedy)
}

fn listed(names: &[String]) -> String {
    const MAX_NAMES: usize = 12;
    const MAX_LETTERS: usize = 60;
    let shortened = |name: &String| match name.char_indices().nth(MAX_LETTERS) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.clone(),
    };
    let shown = names.iter().take(MAX_NAMES).map(shortened).collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMES { format!("{shown}, ... ({} in total)", names.len()) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn usual_names_are_recognised_in_any_case() {
        let roles = Roles::by_names(&names("GROUP,LABEL,a,b"), &RoleOptions::default(), "t.csv").unwrap();
        assert_eq!(
            roles.columns,
            [ColumnRole::Query, ColumnRole::Label, ColumnRole::Feature(0), ColumnRole::Feature(1)]
        );
        assert_eq!(roles.features, ["a", "b"]);
    }

    #[test]
    fn options_take_precedence_over_usual_names() {
        let options = RoleOptions {
            label: Some("clicks".into()),
            ignored: vec!["b".into()],
            categories: vec!["a".into()],
            ..RoleOptions::default()
        };
        let roles = Roles::by_names(&names("qid,a,b,clicks,rel"), &options, "t.csv").unwrap();
        assert_eq!(
            roles.columns,
            [
                ColumnRole::Query,
                ColumnRole::Category(0),
                ColumnRole::Ignored,
                ColumnRole::Label,
                ColumnRole::Feature(1)
            ]
        );
        // A feature called `label` would conflict with the label column of the dataset.
        assert!(Roles::by_names(&names("qid,a,b,clicks,label"), &options, "t.csv").is_err());
    }

    #[test]
    fn a_weight_that_is_listed_is_a_feature() {
        let columns = names("qid,label,weight,sample_weight,position,a");
        let roles = |features: &[&str], is_partial: bool| {
            let features = features.iter().map(|name| (*name).to_owned()).collect();
            let options = RoleOptions { features, is_partial, ..RoleOptions::default() };
            Roles::by_names(&columns, &options, "t").unwrap()
        };
        for is_partial in [false, true] {
            let listed = roles(&["weight", "position", "a"], is_partial);
            assert_eq!(listed.features, ["feature_weight", "feature_position", "a"]);
            assert_eq!(listed.columns[3], ColumnRole::Weight, "the other usual name");
            assert!(!listed.has(&ColumnRole::Position));
            let matched = roles(&["w*", "a"], is_partial);
            assert_eq!(matched.features, ["a"], "patterns do not apply to columns with another role");
            assert!(matched.has(&ColumnRole::Weight) && matched.has(&ColumnRole::Position));
        }
        // An option for the role comes first.
        let options = RoleOptions {
            weight: Some("weight".into()),
            features: vec!["weight".into(), "a".into()],
            ..RoleOptions::default()
        };
        let roles = Roles::by_names(&columns, &options, "t").unwrap();
        assert_eq!((&roles.columns[2], &roles.features[..]), (&ColumnRole::Weight, &["a".to_owned()][..]));
    }

    #[test]
    fn two_columns_that_may_be_labels_are_ambiguous() {
        let columns = names("qid,grade,Relevance,a");
        let ambiguous = |options: &RoleOptions| {
            let found = Roles::by_names(&columns, options, "t").unwrap().ambiguous_label;
            found.map(|found| (found.label, found.others.join(",")))
        };
        let expected = Some(("Relevance".to_owned(), "grade".to_owned()));
        assert_eq!(ambiguous(&RoleOptions::default()), expected);
        let list = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        for options in [
            RoleOptions { label: Some("grade".into()), ..RoleOptions::default() },
            RoleOptions { ignored: list(&["grade"]), ..RoleOptions::default() },
            RoleOptions { features: list(&["grade", "a"]), ..RoleOptions::default() },
            RoleOptions { features: list(&["a"]), ..RoleOptions::default() },
            RoleOptions { categories: list(&["grade"]), ..RoleOptions::default() },
        ] {
            assert_eq!(ambiguous(&options), None, "{options:?}");
        }
    }

    #[test]
    fn patterns_select_features() {
        let columns = names("qid,label,raw_a,raw_b,c,d,label_raw");
        let features = |ignored: &[&str], features: &[&str]| {
            let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            let options =
                RoleOptions { ignored: list(ignored), features: list(features), ..RoleOptions::default() };
            Roles::by_names(&columns, &options, "t").map(|roles| roles.features.join(","))
        };
        assert_eq!(features(&["raw_*"], &[]).unwrap(), "c,d,label_raw");
        assert_eq!(features(&["*a*"], &[]).unwrap(), "c,d", "columns with a role stay");
        assert_eq!(features(&[], &["raw_?", "d"]).unwrap(), "raw_a,raw_b,d");
        assert_eq!(features(&["raw_b"], &["raw_*"]).unwrap(), "raw_a");
        let error = features(&["x*"], &[]).unwrap_err();
        assert_eq!(error.to_string(), "t: no column matches \"x*\"");
        assert_eq!(features(&[], &["x"]).unwrap_err().to_string(), "t: there is no column \"x\"");
        assert_eq!(features(&["[x"], &[]).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn a_table_for_validation_may_lack_what_it_does_not_need() {
        let partial = RoleOptions {
            weight: Some("w".into()),
            position: Some("shown".into()),
            ignored: vec!["raw_*".into(), "id".into()],
            is_partial: true,
            ..RoleOptions::default()
        };
        let roles = Roles::by_names(&names("qid,label,a"), &partial, "t").unwrap();
        assert_eq!(roles.features, ["a"]);
        let roles = Roles::by_names(&names("qid,label,w,raw_a,id,a"), &partial, "t").unwrap();
        assert_eq!((roles.features, &roles.columns[2]), (vec!["a".to_owned()], &ColumnRole::Weight));
        for options in [
            RoleOptions { is_partial: false, ..partial.clone() },
            RoleOptions { label: Some("grade".into()), ..partial.clone() },
            RoleOptions { features: vec!["b".into()], ..partial },
        ] {
            assert!(Roles::by_names(&names("qid,label,a"), &options, "t").is_err());
        }
    }

    #[test]
    fn a_table_for_validation_without_the_named_weights_has_none() {
        let partial = RoleOptions {
            weight: Some("w".into()),
            position: Some("shown".into()),
            is_partial: true,
            ..RoleOptions::default()
        };
        let roles =
            Roles::by_names(&names("qid,label,weight,position,sample_weight,a"), &partial, "t").unwrap();
        assert!(!roles.has(&ColumnRole::Weight) && !roles.has(&ColumnRole::Position), "{roles:?}");
        assert_eq!(roles.features, ["sample_weight", "a"]);
        let roles = Roles::by_names(&names("qid,label,weight,w,position,a"), &partial, "t").unwrap();
        assert_eq!(roles.columns[2..5], [ColumnRole::Ignored, ColumnRole::Weight, ColumnRole::Ignored]);
        assert_eq!(roles.features, ["a"]);
    }

    #[test]
    fn an_index_is_skipped_unless_kept_or_given_a_role() {
        let columns = names("qid,label,a,place,__index_level_0__");
        let mut options = RoleOptions { index: vec!["place".into(), "qid".into()], ..RoleOptions::default() };
        let roles = Roles::by_names(&columns, &options, "t").unwrap();
        assert_eq!((&roles.features[..], &roles.index[..]), (&["a".to_owned()][..], &[3, 4][..]));
        assert_eq!(roles.columns[0], ColumnRole::Query);
        options.kept = vec!["place".into()];
        options.categories = vec!["__index_level_0__".into()];
        let roles = Roles::by_names(&columns, &options, "t").unwrap();
        assert_eq!(roles.features, ["a", "place", "__index_level_0__"]);
        options.kept = vec!["plaice".into()];
        assert!(Roles::by_names(&columns, &options, "t").is_err());
    }

    #[test]
    fn a_catboost_description_assigns_roles() {
        let roles =
            Roles::by_description("0\tGroupId\n1\tTarget\n3\tCateg\tcolour\n4\tAuxiliary\n", 6, "t", "t.cd")
                .unwrap();
        assert_eq!(roles.features, ["f1", "colour", "f3"]);
        assert_eq!(roles.columns[3], ColumnRole::Category(1));
        let options = RoleOptions { ignored: vec!["f1".into()], ..RoleOptions::default() };
        let chosen = roles.with_chosen_features(&options, "t").unwrap();
        assert_eq!(chosen.features, ["colour", "f3"]);
        assert_eq!(
            chosen.columns[2..],
            [ColumnRole::Ignored, ColumnRole::Category(0), ColumnRole::Ignored, ColumnRole::Feature(1)]
        );
        let error = Roles::by_description("9\tTarget\n", 6, "t", "t.cd").unwrap_err();
        assert_eq!(error.to_string(), "t.cd:1: column 9 is out of range: t has 6 columns");
    }

    #[test]
    fn text_that_is_no_table_is_recognised_and_long_names_are_shortened() {
        let remedy = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            missing_role(&names, "query", "t").remedy().unwrap_or_default().to_owned()
        };
        assert!(remedy(&["1 qid:1 1:0.5 2:0.25"]).contains("looks like LETOR text"));
        let long = "é".repeat(70);
        assert!(remedy(&[&long, "b"]).ends_with(&format!("the columns are {}..., b", "é".repeat(60))));
    }
}
