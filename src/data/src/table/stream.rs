//! Encodes rows as compressed Arrow IPC streams, to send them to another process.

use arrow::array::RecordBatch;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use planetree_base::error::Result;
use planetree_base::wire::malformed;

/// Encodes batches of rows, which must have the same schema. Without batches, the result is empty.
pub fn batches_to_bytes(batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let mut bytes = Vec::new();
    let write = |bytes: &mut Vec<u8>| {
        let mut writer = StreamWriter::try_new(bytes, first.schema_ref())?;
        batches.iter().try_for_each(|batch| writer.write(batch))?;
        writer.finish()
    };
    write(&mut bytes).map_err(|_| malformed())?;
    zstd::encode_all(bytes.as_slice(), 1).map_err(|_| malformed())
}

/// Decodes batches that were encoded by [`batches_to_bytes`].
pub fn batches_from_bytes(bytes: &[u8]) -> Result<Vec<RecordBatch>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let bytes = zstd::decode_all(bytes).map_err(|_| malformed())?;
    let reader = StreamReader::try_new(bytes.as_slice(), None).map_err(|_| malformed())?;
    reader.collect::<std::result::Result<_, _>>().map_err(|_| malformed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Float64Array, StringArray};
    use std::sync::Arc;

    #[test]
    fn rows_come_back_and_damage_is_an_error() {
        let names: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("über")]));
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![0.1, -0.0, f64::INFINITY]));
        let batch = RecordBatch::try_from_iter([("name", names), ("number", numbers)]).unwrap();
        let rows = vec![batch.clone(), batch.slice(1, 2), batch.slice(2, 0)];
        let bytes = batches_to_bytes(&rows).unwrap();
        assert_eq!(batches_from_bytes(&bytes).unwrap(), rows);
        assert!(batches_from_bytes(&bytes[..bytes.len() / 2]).is_err());
        assert!(batches_to_bytes(&[]).unwrap().is_empty() && batches_from_bytes(&[]).unwrap().is_empty());
    }
}
