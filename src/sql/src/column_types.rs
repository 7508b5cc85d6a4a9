//! Finds the columns of a table of several files: those of all files by name, each with a type that has all its values.

use super::foreign::ForeignFormat;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::collections::HashMap;
use std::sync::Arc;

/// Types of numbers, of which the first that has all values of two types is their common type.
const NUMBERS: [DataType; 11] = [
    DataType::Int8,
    DataType::UInt8,
    DataType::Int16,
    DataType::UInt16,
    DataType::Int32,
    DataType::UInt32,
    DataType::Int64,
    DataType::UInt64,
    DataType::Float16,
    DataType::Float32,
    DataType::Float64,
];

/// A column of a table, as far as the files so far decide it.
struct CommonColumn<'f> {
    name: &'f str,
    kind: DataType,
    is_nullable: bool,
    /// The file that the type is from.
    file: &'f Location,
    /// Number of files that have the column.
    files: usize,
}

/// Returns the columns of a table of several files. A column that a file lacks is NULL in its rows. Fails if the types of a
/// column do not fit together: values would be cut or rounded.
pub(crate) fn common_columns(format: ForeignFormat, files: &[(&Location, SchemaRef)]) -> Result<SchemaRef> {
    let is_by_position = matches!(format, ForeignFormat::Delimited(_));
    let mut columns: Vec<CommonColumn<'_>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (file, schema) in files {
        let file: &Location = file;
        for (position, field) in schema.fields().iter().enumerate() {
            // The columns of delimited files have the same names in the same order, and may have one name twice.
            let place = match is_by_position {
                true => Some(position).filter(|position| *position < columns.len()),
                false => places.get(field.name().as_str()).copied(),
            };
            let Some(place) = place else {
                places.insert(field.name(), columns.len());
                columns.push(CommonColumn {
                    name: field.name(),
                    kind: field.data_type().clone(),
                    is_nullable: field.is_nullable(),
                    file,
                    files: 1,
                });
                continue;
            };
            let column = &mut columns[place];
            let Some(kind) = common_type(&column.kind, field.data_type(), format) else {
                return Err(Error::place(
                    file,
                    format_args!(
                        "the column {} is {}, but {} in {}",
                        column.name,
                        field.data_type(),
                        column.kind,
                        column.file
                    ),
                    "write one of the files again with the type of the other, or combine them with UNION ALL BY NAME",
                ));
            };
            if kind != column.kind {
                (column.kind, column.file) = (kind, file);
            }
            column.is_nullable |= field.is_nullable();
            column.files += 1;
        }
    }
    let field = |column: CommonColumn<'_>| {
        let is_nullable = column.is_nullable || column.files < files.len();
        Field::new(column.name, column.kind, is_nullable)
    };
    Ok(Arc::new(Schema::new(columns.into_iter().map(field).collect::<Vec<Field>>())))
}

/// Returns a type that has all values of two types.
fn common_type(first: &DataType, second: &DataType, format: ForeignFormat) -> Option<DataType> {
    use DataType::{
        Binary, BinaryView, Dictionary, Float64, Int64, LargeBinary, LargeUtf8, Null, Utf8, Utf8View,
    };
    if first == second {
        return Some(first.clone());
    }
    match (first, second) {
        (Null, other) | (other, Null) => return Some(other.clone()),
        (Dictionary(_, value), other) | (other, Dictionary(_, value)) => {
            return common_type(value, other, format);
        }
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View) => {
            let has_views = *first == Utf8View || *second == Utf8View;
            return Some(if has_views { Utf8View } else { LargeUtf8 });
        }
        (Binary | LargeBinary | BinaryView, Binary | LargeBinary | BinaryView) => {
            let has_views = *first == BinaryView || *second == BinaryView;
            return Some(if has_views { BinaryView } else { LargeBinary });
        }
        _ => {}
    }
    match (format, first, second) {
        // The types of text files are guesses. They are those of one file that has the rows of both.
        (ForeignFormat::Parquet, ..) => {
            let mut numbers = NUMBERS.into_iter();
            numbers.find(|wide| has_values_of(wide, first) && has_values_of(wide, second))
        }
        (_, Int64, Float64) | (_, Float64, Int64) => Some(Float64),
        (ForeignFormat::Delimited(_), ..) => Some(Utf8),
        (ForeignFormat::JsonLines | ForeignFormat::JsonArray, ..) => {
            let mut merged = Field::new("", first.clone(), true);
            merged.try_merge(&Field::new("", second.clone(), true)).ok()?;
            Some(merged.data_type().clone())
        }
    }
}

/// Checks whether a type of numbers has all values of another one.
fn has_values_of(wide: &DataType, narrow: &DataType) -> bool {
    match (whole_numbers(wide), whole_numbers(narrow)) {
        (Some((low, high)), Some((least, most))) => {
            low <= least && most <= high && (wide.is_floating() || !narrow.is_floating())
        }
        _ => false,
    }
}

/// Returns the range of whole numbers that a type has without gaps.
fn whole_numbers(kind: &DataType) -> Option<(i128, i128)> {
    Some(match kind {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        DataType::Float16 => (-(1 << 11), 1 << 11),
        DataType::Float32 => (-(1 << 24), 1 << 24),
        DataType::Float64 => (-(1 << 53), 1 << 53),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: ForeignFormat = ForeignFormat::Delimited(b',');

    fn columns(format: ForeignFormat, files: &[&[(&str, DataType)]]) -> Result<SchemaRef> {
        let names: Vec<Location> =
            (0..files.len()).map(|file| Location::Local(format!("{file}.dat").into())).collect();
        let schema = |columns: &[(&str, DataType)]| -> SchemaRef {
            let field = |(name, kind): &(&str, DataType)| Field::new(*name, kind.clone(), false);
            Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<Field>>()))
        };
        let files: Vec<(&Location, SchemaRef)> =
            names.iter().zip(files.iter().copied()).map(|(name, columns)| (name, schema(columns))).collect();
        common_columns(format, &files)
    }

    #[test]
    fn a_common_type_has_all_values_of_both() {
        for (format, first, second, expected) in [
            (ForeignFormat::Parquet, DataType::Int32, DataType::Float64, Some(DataType::Float64)),
            (ForeignFormat::Parquet, DataType::Int32, DataType::Float32, Some(DataType::Float64)),
            (ForeignFormat::Parquet, DataType::Int16, DataType::Float32, Some(DataType::Float32)),
            (ForeignFormat::Parquet, DataType::Int64, DataType::Float64, None),
            (ForeignFormat::Parquet, DataType::UInt32, DataType::Int8, Some(DataType::Int64)),
            (ForeignFormat::Parquet, DataType::UInt64, DataType::Int8, None),
            (ForeignFormat::Parquet, DataType::Utf8, DataType::Utf8View, Some(DataType::Utf8View)),
            (ForeignFormat::Parquet, DataType::Utf8, DataType::Int64, None),
            (ForeignFormat::Parquet, DataType::Null, DataType::Boolean, Some(DataType::Boolean)),
            (CSV, DataType::Int64, DataType::Float64, Some(DataType::Float64)),
            (CSV, DataType::Int64, DataType::Date32, Some(DataType::Utf8)),
            (ForeignFormat::JsonLines, DataType::Int64, DataType::Float64, Some(DataType::Float64)),
            (ForeignFormat::JsonLines, DataType::Int64, DataType::Utf8, None),
        ] {
            assert_eq!(common_type(&first, &second, format), expected, "{first} {second}");
            assert_eq!(common_type(&second, &first, format), expected, "{second} {first}");
        }
    }

    #[test]
    fn columns_that_some_files_lack_are_nullable() {
        let first = [("a", DataType::Int64), ("b", DataType::Utf8)];
        let second = [("c", DataType::Int64), ("a", DataType::Int64)];
        let schema = columns(ForeignFormat::Parquet, &[&first, &second]).unwrap();
        let found: Vec<(&str, bool)> =
            schema.fields().iter().map(|field| (field.name().as_str(), field.is_nullable())).collect();
        assert_eq!(found, [("a", false), ("b", true), ("c", true)]);
        // Delimited files may have two columns of one name.
        let twice = [("a", DataType::Int64), ("a", DataType::Utf8)];
        assert_eq!(columns(CSV, &[&twice, &twice]).unwrap().fields().len(), 2);
    }

    #[test]
    fn types_that_do_not_fit_are_refused_with_both_files() {
        let files: [&[(&str, DataType)]; 2] = [&[("x", DataType::Int64)], &[("x", DataType::Float64)]];
        let error = columns(ForeignFormat::Parquet, &files).unwrap_err().to_string();
        assert_eq!(error, "1.dat: the column x is Float64, but Int64 in 0.dat");
    }
}
