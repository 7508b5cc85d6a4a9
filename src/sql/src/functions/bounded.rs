//! Bounds the results of functions of the engine that may return much more than they are given, such as
//! `repeat('x', 2000000000)`. The engine does not count such values towards the memory limit, and evaluates constant
//! ones several times while it plans a query.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::compute::kernels::length::length;
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};
use planetree_base::size::shown_size;
use std::sync::Arc;

/// Bytes of an element of a list.
const ELEMENT_BYTES: u64 = 8;
/// Maximum bytes of a character.
const CHARACTER_BYTES: u64 = 4;

/// Returns an upper bound of the bytes of a result in one row.
type RowBytes = fn(&[Argument], usize) -> u64;

/// The bounded functions.
const GROWING: [(&str, RowBytes); 8] = [
    ("repeat", product),
    ("array_repeat", product),
    ("lpad", |arguments, row| CHARACTER_BYTES.saturating_mul(number(arguments, 1, row).unsigned_abs())),
    ("rpad", |arguments, row| CHARACTER_BYTES.saturating_mul(number(arguments, 1, row).unsigned_abs())),
    ("array_resize", |arguments, row| ELEMENT_BYTES.saturating_mul(number(arguments, 1, row).unsigned_abs())),
    ("replace", |arguments, row| {
        let matches = bytes(arguments, 0, row) / bytes(arguments, 1, row).max(1);
        bytes(arguments, 0, row).saturating_add(matches.saturating_mul(bytes(arguments, 2, row)))
    }),
    ("range", range_bytes),
    ("generate_series", range_bytes),
];

/// Replaces the functions by bounded ones, which fail if the values of one batch would take more than `limit` bytes.
pub(crate) fn register_bounded(context: &SessionContext, limit: u64) {
    let state = context.state();
    for (name, row_bytes) in GROWING {
        if let Some(inner) = state.scalar_functions().get(name) {
            let inner = inner.clone();
            context.register_udf(ScalarUDF::new_from_impl(Bounded { inner, limit, row_bytes }));
        }
    }
}

/// A function of the engine with a bound on its results.
#[derive(Debug, Clone)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    limit: u64,
    row_bytes: RowBytes,
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner && self.limit == other.limit
    }
}

impl Eq for Bounded {}

impl std::hash::Hash for Bounded {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        self.inner.schema_name(arguments)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(arguments)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.inner().coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, call: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arguments = call.args.iter().map(Argument::new).collect::<Result<Vec<_>>>()?;
        let rows = if arguments.iter().all(|argument| argument.is_scalar) { 1 } else { call.number_rows };
        let total = (0..rows).fold(0, |sum: u64, row| sum.saturating_add((self.row_bytes)(&arguments, row)));
        if total > self.limit {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{} would return {}, and its results may take {}",
                self.name(),
                shown_size(total),
                shown_size(self.limit)
            )));
        }
        self.inner.invoke_with_args(call)
    }
}

/// The sizes and numbers of an argument.
struct Argument {
    /// Whether all rows have the same value, which is the only one here.
    is_scalar: bool,
    /// Bytes of the values that have a variable size.
    lengths: Option<Int64Array>,
    /// The values that are whole numbers.
    numbers: Option<Int64Array>,
    /// Mean bytes of a value.
    mean_bytes: u64,
}

impl Argument {
    fn new(value: &ColumnarValue) -> Result<Self> {
        let (is_scalar, array): (bool, ArrayRef) = match value {
            ColumnarValue::Scalar(scalar) => (true, scalar.to_array()?),
            ColumnarValue::Array(array) => (false, array.clone()),
        };
        let kind = array.data_type();
        let integers = |array: &dyn Array| -> Result<Int64Array> {
            Ok(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
        };
        let has_length = matches!(
            kind,
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
        );
        let lengths = if has_length { Some(integers(&*length(&*array)?)?) } else { None };
        let numbers = if kind.is_integer() { Some(integers(&*array)?) } else { None };
        let mean_bytes = (array.get_array_memory_size() / array.len().max(1)) as u64;
        Ok(Argument { is_scalar, lengths, numbers, mean_bytes })
    }

    fn at(&self, values: &Option<Int64Array>, row: usize) -> Option<i64> {
        let values = values.as_ref()?;
        let row = if self.is_scalar { 0 } else { row };
        (row < values.len()).then(|| if values.is_null(row) { 0 } else { values.value(row) })
    }
}

fn bytes(arguments: &[Argument], index: usize, row: usize) -> u64 {
    let Some(argument) = arguments.get(index) else { return 0 };
    argument.at(&argument.lengths, row).map_or(argument.mean_bytes, i64::unsigned_abs)
}

fn number(arguments: &[Argument], index: usize, row: usize) -> i64 {
    let found = arguments.get(index).and_then(|argument| argument.at(&argument.numbers, row));
    found.unwrap_or(0).max(0)
}

fn product(arguments: &[Argument], row: usize) -> u64 {
    bytes(arguments, 0, row).saturating_mul(number(arguments, 1, row).unsigned_abs())
}

/// Returns the bytes of a list of whole numbers. Lists of times are not bounded: they have no numbers here.
fn range_bytes(arguments: &[Argument], row: usize) -> u64 {
    let at = |index: usize| {
        arguments.get(index).and_then(|argument: &Argument| argument.at(&argument.numbers, row))
    };
    let (start, stop, step) = match arguments.len() {
        1 => (Some(0), at(0), Some(1)),
        2 => (at(0), at(1), Some(1)),
        _ => (at(0), at(1), at(2)),
    };
    match (start, stop, step) {
        (Some(start), Some(stop), Some(step)) if step != 0 && (stop > start) == (step > 0) => {
            ELEMENT_BYTES.saturating_mul(start.abs_diff(stop) / step.unsigned_abs() + 1)
        }
        _ => 0,
    }
}
