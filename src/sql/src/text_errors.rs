//! Translates errors of the engine's readers of CSV and JSON, which name neither the file nor what to do.

use super::error::to_engine_error;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use planetree_base::error::Error;
use std::sync::Arc;

/// How many files an error names.
const SHOWN: usize = 3;

/// The problem of a text file and the remedy.
pub(crate) struct TextProblem {
    problem: String,
    remedy: &'static str,
    /// Position of the column, if the problem is a value.
    column: Option<usize>,
}

/// The text files that a plan reads together, and their columns.
struct TextSource {
    files: Vec<String>,
    columns: SchemaRef,
}

/// Returns the problem of a text file that an error says.
pub(crate) fn text_problem(error: &ArrowError) -> Option<TextProblem> {
    let first_line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    match error {
        ArrowError::ParseError(text) => wrong_value(text).or_else(|| wrong_time(text)),
        ArrowError::CsvError(text) => Some(unequal_lengths(text).unwrap_or_else(|| TextProblem {
            problem: format!("cannot read CSV: {}", first_line(text)),
            remedy: "correct the file, or write it again",
            column: None,
        })),
        ArrowError::JsonError(text) => Some(TextProblem {
            problem: format!("cannot read JSON: {}", first_line(text)),
            remedy: "write one complete JSON object per line, in which a key has values of the same type as in the first lines",
            column: None,
        }),
        _ => None,
    }
}

/// Remedy for a value that is not of the type that the first rows have.
const WRONG_VALUE: &str = "the first rows decide the type of a column: correct the value, or move the row to the beginning of the file";

/// A value that is not of the type that the first rows have.
fn wrong_value(text: &str) -> Option<TextProblem> {
    let rest = text.strip_prefix("Error while parsing value '")?;
    let (value, rest) = rest.split_once("' as type '")?;
    let (kind, rest) = rest.split_once("' for column ")?;
    let (column, rest) = rest.split_once(" at line ")?;
    let row = rest.split('.').next()?;
    Some(TextProblem {
        problem: format!("row {row} has the value '{value}', but the first rows are {kind}"),
        remedy: WRONG_VALUE,
        column: column.parse().ok(),
    })
}

/// A value that is no date or time, as those of the first rows are.
fn wrong_time(text: &str) -> Option<TextProblem> {
    let (column, rest) = text.strip_prefix("Error parsing column ")?.split_once(" at line ")?;
    let (row, problem) = rest.split_once(": ")?;
    Some(TextProblem {
        problem: format!("row {row}: {problem}"),
        remedy: WRONG_VALUE,
        column: column.parse().ok(),
    })
}

/// A row that has more or fewer values than the header.
fn unequal_lengths(text: &str) -> Option<TextProblem> {
    let (line, expected, found) = match text.strip_prefix("incorrect number of fields for ") {
        Some(rest) => {
            let (line, rest) = rest.split_once(", expected ")?;
            let (expected, found) = rest.split_once(" got ")?;
            (line, expected, found)
        }
        None => {
            let (_, rest) = text.split_once("Encountered unequal lengths between records on CSV file")?;
            let (_, rest) = rest.split_once("Expected ")?;
            let (expected, rest) = rest.split_once(" records, found ")?;
            let (found, rest) = rest.split_once(" records")?;
            (rest.strip_prefix(" at ").unwrap_or("a line"), expected, found)
        }
    };
    Some(TextProblem {
        problem: format!("{line} has {found} values, but the header has {expected}"),
        remedy: "put values that contain the delimiter in double quotes, or correct the line",
        column: None,
    })
}

impl TextProblem {
    /// Returns the error for a problem at a place.
    pub(crate) fn at(&self, place: impl std::fmt::Display) -> Error {
        Error::place(place, &self.problem, self.remedy)
    }

    /// Returns the error for a problem in one of the files of a query.
    fn in_sources(&self, sources: &[TextSource]) -> Error {
        let files = sources.iter().flat_map(|source| &source.files);
        let mut files: Vec<&str> = files.map(String::as_str).collect();
        files.dedup(); // a query may read a file twice
        let place = match files.as_slice() {
            [] => "query".to_owned(),
            [file] => (*file).to_owned(),
            files if files.len() <= SHOWN => format!("one of {}", files.join(", ")),
            files => format!("one of {} files: {}, ...", files.len(), files[..SHOWN].join(", ")),
        };
        let column = match sources {
            [source] => self.column.and_then(|column| source.columns.fields().get(column)),
            _ => None,
        };
        match (column, self.column) {
            (Some(field), _) => {
                Error::place(place, format_args!("column {}: {}", field.name(), self.problem), self.remedy)
            }
            (None, Some(column)) => {
                Error::place(place, format_args!("column {}: {}", column + 1, self.problem), self.remedy)
            }
            (None, None) => self.at(place),
        }
    }
}

/// Names the file and the remedy in an error of a text file. Other errors are returned as they are.
pub(crate) fn with_place(error: DataFusionError, place: impl std::fmt::Display) -> DataFusionError {
    match problem_of(&error) {
        Some(problem) => to_engine_error(problem.at(place)),
        None => error,
    }
}

fn problem_of(error: &DataFusionError) -> Option<TextProblem> {
    match error.find_root() {
        DataFusionError::ArrowError(error, _) => text_problem(error),
        _ => None,
    }
}

/// Names the text files that a plan reads in the errors of its rows.
pub(crate) fn name_text_files(
    plan: &Arc<dyn ExecutionPlan>,
    stream: SendableRecordBatchStream,
) -> SendableRecordBatchStream {
    let mut sources = Vec::new();
    find_sources(plan, &mut sources);
    if sources.is_empty() {
        return stream;
    }
    let schema = stream.schema();
    let named = stream.map(move |batch| {
        batch.map_err(|error| match problem_of(&error) {
            Some(problem) => to_engine_error(problem.in_sources(&sources)),
            None => error,
        })
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, named))
}

/// Names the text files that a plan reads in an error of its execution. Other errors are returned as they are.
pub(crate) async fn with_text_files(
    error: DataFusionError,
    state: &SessionState,
    plan: &LogicalPlan,
) -> DataFusionError {
    let Some(problem) = problem_of(&error) else { return error };
    let query = match plan {
        LogicalPlan::Ddl(_) => plan.inputs().first().copied().unwrap_or(plan),
        query => query,
    };
    let mut sources = Vec::new();
    if let Ok(plan) = state.create_physical_plan(query).await {
        find_sources(&plan, &mut sources);
    }
    to_engine_error(problem.in_sources(&sources))
}

fn find_sources(plan: &Arc<dyn ExecutionPlan>, sources: &mut Vec<TextSource>) {
    let scan = plan.downcast_ref::<DataSourceExec>();
    let scan = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
    if let Some(scan) = scan.filter(|scan| matches!(scan.file_source.file_type(), "csv" | "json")) {
        let store = match scan.object_store_url.as_str() {
            local if local.starts_with("file:") => "/",
            url => url,
        };
        let files = scan.file_groups.iter().flat_map(|group| group.files());
        let mut files: Vec<String> =
            files.map(|file| format!("{store}{}", file.object_meta.location)).collect();
        files.dedup(); // a file may be read in several parts
        sources.push(TextSource { files, columns: scan.file_schema().clone() });
    }
    plan.children().into_iter().for_each(|child| find_sources(child, sources));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_text_files_have_a_position_and_a_remedy() {
        let said = |error: ArrowError| {
            let error = text_problem(&error).unwrap().at("a.csv");
            assert!(error.remedy().is_some());
            error.to_string()
        };
        let value =
            "Error while parsing value '1.5' as type 'Int64' for column 0 at line 2001. Row data: '[1.5,2]'";
        assert_eq!(
            said(ArrowError::ParseError(value.to_owned())),
            "a.csv: row 2001 has the value '1.5', but the first rows are Int64"
        );
        let lengths = "Encountered unequal lengths between records on CSV file. Expected 2 records, found 3 records at line 3";
        assert_eq!(
            said(ArrowError::CsvError(lengths.to_owned())),
            "a.csv: line 3 has 3 values, but the header has 2"
        );
        let time =
            "Error parsing column 1 at line 7: Parser error: Error parsing timestamp from 'x': no date";
        assert_eq!(
            said(ArrowError::ParseError(time.to_owned())),
            "a.csv: row 7: Parser error: Error parsing timestamp from 'x': no date"
        );
        let fields = "incorrect number of fields for line 9, expected 2 got more than 2";
        assert_eq!(
            said(ArrowError::CsvError(fields.to_owned())),
            "a.csv: line 9 has more than 2 values, but the header has 2"
        );
        let json = "whilst decoding field 'a': expected [ got 1";
        assert_eq!(said(ArrowError::JsonError(json.to_owned())), format!("a.csv: cannot read JSON: {json}"));
        assert!(text_problem(&ArrowError::ParseError("a time".to_owned())).is_none());
        assert!(text_problem(&ArrowError::DivideByZero).is_none());
    }
}
