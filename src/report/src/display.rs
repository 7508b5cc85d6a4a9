//! Reads display tables: texts of queries, titles and links of documents, and columns that divide the queries into
//! segments. A display table is a Parquet or CSV file with a column `query_id`, `doc_id` or both.

use super::html::Html;
use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use csv_core::{ReadRecordResult, ReaderBuilder};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::table::{AnyParquet, TableReader};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of distinct values of a column whose values are shown as segments.
pub(crate) const SEGMENTS: usize = 12;
/// Names of the columns with the text of a query.
const TEXTS: [&str; 3] = ["query_text", "query", "text"];
/// Names of the columns with the title of a document. A column `text` is one of them if the table has documents.
const TITLES: [&str; 4] = ["title", "doc_title", "document_title", "text"];
/// Names of the columns with the address of a document.
const LINKS: [&str; 3] = ["url", "link", "href"];
/// Maximum length of a link in bytes. Longer ones are shown as text.
const LONGEST_LINK: usize = 2000;
/// Names of the columns with the ids.
const QUERIES: [&str; 2] = ["query_id", "qid"];
const DOCUMENTS: [&str; 3] = ["doc_id", "docid", "document_id"];
const FORM: &str = "give a Parquet or CSV file with a header and a column query_id, doc_id or both";

/// Texts, titles, links and segments of the queries and documents of a report.
#[derive(Debug, Default)]
pub(crate) struct Display {
    texts: BTreeMap<String, String>,
    /// By document id and, unless the table has no queries, query id.
    documents: BTreeMap<(String, Option<String>), DocumentDisplay>,
    /// The columns that divide the queries into segments.
    pub segments: Vec<SegmentColumn>,
    /// What the user should know about the tables.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct DocumentDisplay {
    title: Option<String>,
    link: Option<String>,
}

/// A column whose value is the same for all rows of a query.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SegmentColumn {
    /// Name of the column.
    pub name: String,
    /// Value of each query.
    pub of: BTreeMap<String, String>,
    values: BTreeSet<String>,
    is_invalid: bool,
}

impl Display {
    /// Reads tables. Documents are kept only if their query is among the `shown` ones.
    pub(crate) fn read(tables: &[Location], shown: &BTreeSet<&str>) -> Result<Self> {
        let mut display = Display::default();
        for location in tables {
            let mut roles: Option<DisplayRoles> = None;
            let first = display.segments.len();
            let mut is_used = false;
            each_row(location, &mut |header, row| {
                if roles.is_none() {
                    roles = Some(DisplayRoles::of(header, location)?);
                    let others = roles.iter().flat_map(|roles| &roles.others);
                    display.segments.extend(
                        others.map(|place| SegmentColumn {
                            name: header[*place].clone(),
                            ..Default::default()
                        }),
                    );
                }
                if let Some(roles) = &roles {
                    is_used |= display.add(roles, row, shown, first);
                }
                Ok(())
            })?;
            if !is_used {
                display.notes.push(format!("{location} has none of the queries whose documents are shown"));
            }
        }
        display.segments.retain(|column| !column.is_invalid && column.values.len() > 1);
        Ok(display)
    }

    /// Adds a row. Returns whether it is about one of the shown queries, or about a document of any query.
    fn add(
        &mut self,
        roles: &DisplayRoles,
        row: &[Option<String>],
        shown: &BTreeSet<&str>,
        first: usize,
    ) -> bool {
        let cell = |place: Option<usize>| row.get(place?)?.as_ref().filter(|text| !text.is_empty());
        let (query, document) = (cell(roles.query), cell(roles.document));
        if let (Some(query), Some(text)) = (query, cell(roles.text)) {
            self.texts.entry(query.clone()).or_insert_with(|| text.clone());
        }
        if let Some(document) = document
            && query.is_none_or(|query| shown.contains(query.as_str()))
        {
            let it = DocumentDisplay { title: cell(roles.title).cloned(), link: cell(roles.link).cloned() };
            self.documents.entry((document.clone(), query.cloned())).or_insert(it);
        }
        let Some(query) = query else { return document.is_some() };
        for (column, place) in self.segments[first..].iter_mut().zip(&roles.others) {
            column.add(query, cell(Some(*place)));
        }
        shown.contains(query.as_str())
    }

    /// Returns the text of a query.
    pub(crate) fn text(&self, query: &str) -> Option<&str> {
        self.texts.get(query).map(String::as_str)
    }

    /// Returns the title of a document.
    pub(crate) fn title(&self, query: &str, document: &str) -> Option<&str> {
        self.document(query, document)?.title.as_deref()
    }

    /// Renders a document: its title, or its id if it has none, as a link if it has an address.
    pub(crate) fn shown_document(&self, query: &str, document: &str) -> Html {
        let it = self.document(query, document);
        let id = Html::classed("span", "id", Html::name(document));
        let content = match it.and_then(|it| it.title.as_deref()) {
            Some(title) => Html::classed("span", "title", Html::name(title)).and(id),
            None => id,
        };
        match it.and_then(|it| it.link.as_deref()).filter(|link| is_web_address(link)) {
            Some(link) => Html::element(
                "a",
                &[("href", link), ("target", "_blank"), ("rel", "noopener noreferrer")],
                content,
            ),
            None => content,
        }
    }

    fn document(&self, query: &str, document: &str) -> Option<&DocumentDisplay> {
        let keys = [(document.to_owned(), Some(query.to_owned())), (document.to_owned(), None)];
        keys.iter().find_map(|key| self.documents.get(key))
    }
}

impl SegmentColumn {
    fn add(&mut self, query: &str, value: Option<&String>) {
        let Some(value) = value.filter(|_| !self.is_invalid) else { return };
        let known = self.of.entry(query.to_owned()).or_insert_with(|| value.clone());
        self.is_invalid |= known != value;
        if !self.values.contains(value) {
            self.values.insert(value.clone());
        }
        if self.values.len() > SEGMENTS || self.is_invalid {
            *self = SegmentColumn {
                is_invalid: true,
                name: std::mem::take(&mut self.name),
                ..Default::default()
            };
        }
    }
}

/// Returns whether a link leads to a web page. Links of other kinds, such as `javascript:`, are shown as text.
fn is_web_address(link: &str) -> bool {
    let is_scheme =
        |scheme: &str| link.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    (is_scheme("http://") || is_scheme("https://"))
        && link.len() <= LONGEST_LINK
        && !link.chars().any(|letter| letter.is_control())
}

/// The columns of a display table by their role.
struct DisplayRoles {
    query: Option<usize>,
    document: Option<usize>,
    text: Option<usize>,
    title: Option<usize>,
    link: Option<usize>,
    others: Vec<usize>,
}

impl DisplayRoles {
    fn of(header: &[String], location: &Location) -> Result<Self> {
        let find = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| header.iter().position(|column| column.trim().eq_ignore_ascii_case(name)))
        };
        let (query, document) = (find(&QUERIES), find(&DOCUMENTS));
        if query.is_none() && document.is_none() {
            let problem = format_args!("no column query_id or doc_id among {}", header.join(", "));
            return Err(Error::place(location, problem, FORM));
        }
        let text = find(if document.is_some() { &TEXTS[..2] } else { &TEXTS });
        let title = document.and_then(|_| find(&TITLES));
        let link = document.and_then(|_| find(&LINKS));
        let used = [query, document, text, title, link];
        let others = (0..header.len()).filter(|place| !used.contains(&Some(*place))).collect();
        Ok(DisplayRoles { query, document, text, title, link, others })
    }
}

type EachRow<'s> = &'s mut dyn FnMut(&[String], &[Option<String>]) -> Result<()>;

/// Passes the header and every row of a file to `sink`. Parquet is recognised by its first bytes; everything else is
/// CSV, or TSV if the file has this extension.
fn each_row(location: &Location, sink: EachRow<'_>) -> Result<()> {
    if let Location::Local(path) = location
        && path.is_dir()
    {
        return Err(Error::place(location, "this is a directory, not a table", FORM));
    }
    let size = location.size()?.ok_or_else(|| location.absent())?;
    let head = location.read_range(0, size.min(4))?;
    if head[..] == *b"PAR1" { each_parquet_row(location, sink) } else { each_text_row(location, sink) }
}

fn each_parquet_row(location: &Location, sink: EachRow<'_>) -> Result<()> {
    let file = match TableReader::open_or_foreign(location, FORM)? {
        AnyParquet::Ours(table) => table.file().clone(),
        AnyParquet::Foreign(file) => file,
    };
    for group in 0..file.groups() {
        for batch in file.group_batches(group, None, 1 << 14)? {
            let batch = batch?;
            // Columns without a text form, such as lists, are left out.
            let texts = batch.schema_ref().fields().iter().zip(batch.columns());
            let (header, columns): (Vec<String>, Vec<_>) = texts
                .filter_map(|(field, column)| {
                    Some((field.name().clone(), cast(column, &DataType::Utf8).ok()?))
                })
                .unzip();
            for row in 0..batch.num_rows() {
                let cells: Vec<Option<String>> = columns
                    .iter()
                    .map(|column| {
                        let column = column.as_string::<i32>();
                        column.is_valid(row).then(|| column.value(row).to_owned())
                    })
                    .collect();
                sink(&header, &cells)?;
            }
        }
    }
    Ok(())
}

fn each_text_row(location: &Location, sink: EachRow<'_>) -> Result<()> {
    let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
    let text = std::str::from_utf8(&bytes).map_err(|_| Error::place(location, "not UTF-8 text", FORM))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let delimiter = if location.name().ends_with(".tsv") { b'\t' } else { b',' };
    let mut reader = ReaderBuilder::new().delimiter(delimiter).build();
    let (mut input, mut header): (&[u8], Option<Vec<String>>) = (text.as_bytes(), None);
    let (mut output, mut ends) = (vec![0; 4096], vec![0; 64]);
    let (mut filled, mut ended) = (0, 0);
    loop {
        let line = reader.line();
        let (result, read, written, finished) =
            reader.read_record(input, &mut output[filled..], &mut ends[ended..]);
        (input, filled, ended) = (&input[read..], filled + written, ended + finished);
        match result {
            ReadRecordResult::InputEmpty => {}
            ReadRecordResult::OutputFull => output.resize(output.len() * 2, 0),
            ReadRecordResult::OutputEndsFull => ends.resize(ends.len() * 2, 0),
            ReadRecordResult::End => return Ok(()),
            ReadRecordResult::Record => {
                let starts = std::iter::once(0).chain(ends[..ended].iter().copied());
                let fields: Vec<String> = starts
                    .zip(&ends[..ended])
                    .map(|(start, end)| String::from_utf8_lossy(&output[start..*end]).into_owned())
                    .collect();
                (filled, ended) = (0, 0);
                let Some(header) = &header else {
                    header = Some(fields);
                    continue;
                };
                if fields.len() != header.len() {
                    return Err(Error::place(
                        format_args!("{location}:{line}"),
                        format_args!("{} fields, but the header has {}", fields.len(), header.len()),
                        "quote fields that contain the delimiter",
                    ));
                }
                sink(header, &fields.into_iter().map(Some).collect::<Vec<_>>())?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Display> {
        let room = tempfile::tempdir().unwrap();
        let file = room.path().join("display.csv");
        std::fs::write(&file, text).unwrap();
        let location = Location::Local(file);
        Display::read(&[location], &BTreeSet::from(["q1", "q2"]))
    }

    #[test]
    fn texts_titles_links_and_segments_are_found() {
        let rows = "query_id,doc_id,query,title,url,market\n\
                    q1,d1,\"cats, dogs\",A cat,https://a.example/?a=1&b=2,de\n\
                    q1,d2,\"cats, dogs\",,javascript:alert(1),de\n\
                    q2,d1,birds,A bird,HTTP://b.example,fr\n\
                    q9,d1,fish,A fish,,fr\n";
        let display = read(rows).unwrap();
        assert_eq!((display.text("q1"), display.text("q3")), (Some("cats, dogs"), None));
        assert_eq!((display.title("q2", "d1"), display.title("q9", "d1")), (Some("A bird"), None));
        let shown = display.shown_document("q1", "d1");
        assert!(shown.as_str().starts_with("<a href=\"https://a.example/?a=1&amp;b=2\" "), "{shown:?}");
        assert!(!display.shown_document("q1", "d2").as_str().contains("<a"));
        assert!(display.shown_document("q2", "d1").as_str().contains("<a href"));
        assert!(display.notes.is_empty());
        let [market] = &display.segments[..] else { panic!("{:?}", display.segments) };
        assert_eq!((market.name.as_str(), market.of["q1"].as_str(), market.of.len()), ("market", "de", 3));
    }

    #[test]
    fn a_column_that_varies_within_a_query_is_no_segment() {
        let display = read("query_id,position\nq1,a\nq1,b\nq2,a\n").unwrap();
        assert!(display.segments.is_empty());
        let many: String = (0..20).map(|query| format!("q{query},v{query}\n")).collect();
        assert!(read(&format!("query_id,kind\n{many}")).unwrap().segments.is_empty());
    }

    #[test]
    fn a_table_of_other_queries_is_noted() {
        let display = read("qid,text\nQ1,cats\n").unwrap();
        assert_eq!(display.text("Q1"), Some("cats"));
        let [note] = &display.notes[..] else { panic!("{:?}", display.notes) };
        assert!(note.ends_with("display.csv has none of the queries whose documents are shown"), "{note}");
        assert!(read("docid,title\nd1,A cat\n").unwrap().notes.is_empty());
    }

    #[test]
    fn malformed_tables_are_errors() {
        let error = read("query,title\na,b\n").unwrap_err().to_string();
        assert!(error.contains("no column query_id or doc_id"), "{error}");
        let error = read("query_id,title\na,b\nc\n").unwrap_err().to_string();
        assert!(error.contains("display.csv:3") && error.contains("1 fields"), "{error}");
    }
}
