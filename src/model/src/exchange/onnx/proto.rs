//! The part of the protocol buffer encoding that ONNX files need. Reading never allocates more than the file has bytes.

/// A message that is being written.
#[derive(Debug, Default)]
pub(super) struct Message(pub Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Appends an integer.
    pub(super) fn int(mut self, field: u64, value: i64) -> Self {
        self.varint(field << 3);
        self.varint(value as u64);
        self
    }

    /// Appends bytes, a string or a message.
    pub(super) fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends a message.
    pub(super) fn message(self, field: u64, message: &Message) -> Self {
        self.bytes(field, &message.0)
    }

    /// Appends a list of integers.
    pub(super) fn ints(self, field: u64, values: impl Iterator<Item = i64>) -> Self {
        let mut packed = Message::default();
        values.for_each(|value| packed.varint(value as u64));
        self.bytes(field, &packed.0)
    }

    /// Appends a list of 32-bit floats.
    pub(super) fn floats(self, field: u64, values: impl Iterator<Item = f32>) -> Self {
        let packed: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
        self.bytes(field, &packed)
    }
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wire<'a> {
    Int(u64),
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32(u32),
}

/// Splits a message into its fields.
pub(super) fn fields(bytes: &[u8]) -> impl Iterator<Item = Result<(u64, Wire<'_>), String>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = field(&mut rest);
        if field.is_err() {
            rest = &[];
        }
        Some(field)
    })
}

fn field<'a>(rest: &mut &'a [u8]) -> Result<(u64, Wire<'a>), String> {
    let key = varint(rest)?;
    let value = match key & 7 {
        0 => Wire::Int(varint(rest)?),
        1 => Wire::Bytes(take(rest, 8)?),
        2 => {
            let length = varint(rest)?;
            Wire::Bytes(take(rest, usize::try_from(length).map_err(|_| "a field is too long")?)?)
        }
        5 => {
            let bytes = take(rest, 4)?;
            Wire::Fixed32(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        }
        _ => return Err("a field has an unknown type".to_owned()),
    };
    Ok((key >> 3, value))
}

fn varint(rest: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let (byte, after) = rest.split_first().ok_or("the file ends within a number")?;
        *rest = after;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number is too long".to_owned())
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], String> {
    let (taken, after) = rest.split_at_checked(count).ok_or("the file ends within a field")?;
    *rest = after;
    Ok(taken)
}

/// Returns the integers of a repeated field, packed or not.
pub(super) fn push_ints(list: &mut Vec<i64>, value: Wire<'_>) -> Result<(), String> {
    match value {
        Wire::Int(value) => list.push(value as i64),
        Wire::Bytes(mut packed) => {
            while !packed.is_empty() {
                list.push(varint(&mut packed)? as i64);
            }
        }
        Wire::Fixed32(_) => return Err("a list of integers has floats".to_owned()),
    }
    Ok(())
}

/// Returns the floats of a repeated field, packed or not.
pub(super) fn push_floats(list: &mut Vec<f64>, value: Wire<'_>) -> Result<(), String> {
    match value {
        Wire::Fixed32(bits) => list.push(f64::from(f32::from_bits(bits))),
        Wire::Bytes(packed) => {
            let number =
                |bytes: &[u8]| f64::from(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
            list.extend(packed.chunks_exact(4).map(number));
        }
        Wire::Int(_) => return Err("a list of floats has integers".to_owned()),
    }
    Ok(())
}
