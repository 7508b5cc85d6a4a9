//! Assigns a role to each column of an input table: query id, label, document id, weight, position or feature.

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
    /// Features to keep: names or patterns. All other columns without a role are skipped; if empty, none are.
    pub features: Vec<String>,
    /// Categorical columns.
    pub categories: Vec<String>,
    /// Columns that are categorical in another dataset. Their categories keep the codes that they have there.
    pub known_categories: Vec<String>,
    /// Index columns of a data frame, according to the file's metadata.
    pub index: Vec<String>,
    /// Index columns to keep as features.
    pub kept: Vec<String>,
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

/// The roles of all columns in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Roles {
    /// One role per column.
    pub columns: Vec<ColumnRole>,
    /// Names of the features.
    pub features: Vec<String>,
    /// Indices of the columns that are skipped because they are the index of a data frame.
    pub index: Vec<usize>,
}

impl Roles {
    /// Assigns roles to columns, first according to the options, then according to the usual names. `file` is the
    /// name of the table for messages.
    pub(crate) fn by_names(names: &[String], options: &RoleOptions, file: &str) -> Result<Self> {
        let mut columns = vec![None; names.len()];
        let usual: [(&Option<String>, &[&str], ColumnRole); 5] = [
            (&options.query, QUERY, ColumnRole::Query),
            (&options.label, LABEL, ColumnRole::Label),
            (&options.document, DOCUMENT, ColumnRole::Document),
            (&options.weight, WEIGHT, ColumnRole::Weight),
            (&options.position, POSITION, ColumnRole::Position),
        ];
        for (wanted, _, role) in &usual {
            if let Some(wanted) = wanted {
                columns[find(names, wanted, file)?] = Some(role.clone());
            }
        }
        let ignored = Selection::find(&options.ignored, names, file)?;
        for place in &ignored.named {
            columns[*place] = Some(ColumnRole::Ignored);
        }
        let chosen = Selection::find(&options.features, names, file)?;
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
                    columns[place].is_none()
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
        let (mut features, mut index) = (Vec::new(), Vec::new());
        let columns = columns
            .into_iter()
            .enumerate()
            .map(|(place, role)| {
                role.unwrap_or_else(|| {
                    if is_skipped(place) {
                        return ColumnRole::Ignored;
                    }
                    if is_index(place) {
                        index.push(place);
                        return ColumnRole::Ignored;
                    }
                    features.push(names[place].clone());
                    let feature = features.len() as u32 - 1;
                    if categories.contains(&place) {
                        ColumnRole::Category(feature)
                    } else {
                        ColumnRole::Feature(feature)
                    }
                })
            })
            .collect();
        let roles = Roles { columns, features, index };
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
        let roles = Roles { columns, features, index: Vec::new() };
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
    const RESERVED: [&str; 5] = ["query_id", "doc_id", "label", "weight", "position"];
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
struct Selection {
    /// Columns given by name.
    named: Vec<usize>,
    /// Columns that match a pattern.
    matched: Vec<usize>,
}

impl Selection {
    /// Finds the columns. Every name must be that of a column, and every pattern must match one.
    fn find(wanted: &[String], names: &[String], file: &str) -> Result<Self> {
        let mut selection = Selection::default();
        for wanted in wanted {
            if !wanted.contains(['*', '?', '[']) || names.contains(wanted) {
                selection.named.push(find(names, wanted, file)?);
                continue;
            }
            let pattern = glob::Pattern::new(wanted).map_err(|error| {
                Error::usage(format_args!("{wanted:?}: invalid pattern: {error}"), "check the brackets")
            })?;
            let places = (0..names.len()).filter(|place| pattern.matches(&names[*place]));
            let before = selection.matched.len();
            selection.matched.extend(places);
            if selection.matched.len() == before {
                return Err(Error::usage(
                    format_args!("{file}: no column matches {wanted:?}"),
                    format_args!("the columns are {}", listed(names)),
                ));
            }
        }
        Ok(selection)
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
    Error::usage(
        format_args!("{file}: no {role} column found"),
        format_args!("choose one with --{role}-column; the columns are {}", listed(names)),
    )
}

fn listed(names: &[String]) -> String {
    const MAX_NAMES: usize = 12;
    let shown = names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
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
        let error = Roles::by_description("9\tTarget\n", 6, "t", "t.cd").unwrap_err();
        assert_eq!(error.to_string(), "t.cd:1: column 9 is out of range: t has 6 columns");
    }
}
