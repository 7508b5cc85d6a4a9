//! Encodes serde values in the compact encoding that `mod.rs` describes.

use super::{CompactFault, Done};
use crate::wire::WireWriter;
use serde::ser::{self, Serialize, Serializer};

/// Encodes one value.
pub(super) struct CompactEncoder<'a> {
    /// Receives the encoded bytes.
    pub(super) writer: &'a mut WireWriter,
}

impl CompactEncoder<'_> {
    fn length(&mut self, length: Option<usize>) -> Done<()> {
        let length =
            length.ok_or_else(|| CompactFault("the length of a list is not known in advance".to_owned()))?;
        self.writer.count(length as u64);
        Ok(())
    }
}

/// Generates one encoding function for each of the given number types.
macro_rules! encode_integers {
    ($($method:ident: $type:ty => $how:ident as $wide:ty),* $(,)?) => {
        $(fn $method(self, value: $type) -> Done<()> {
            self.writer.$how(value as $wide);
            Ok(())
        })*
    };
}

impl<'a> Serializer for CompactEncoder<'a> {
    type Ok = ();
    type Error = CompactFault;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    encode_integers! {
        serialize_bool: bool => count as u64,
        serialize_u8: u8 => byte as u8,
        serialize_u16: u16 => count as u64,
        serialize_u32: u32 => count as u64,
        serialize_u64: u64 => count as u64,
        serialize_char: char => count as u64,
        serialize_i8: i8 => signed as i64,
        serialize_i16: i16 => signed as i64,
        serialize_i32: i32 => signed as i64,
        serialize_i64: i64 => signed as i64,
        serialize_f64: f64 => float as f64,
        serialize_f32: f32 => single as f32,
    }

    fn serialize_str(self, text: &str) -> Done<()> {
        self.writer.text(text);
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Done<()> {
        self.writer.list(bytes);
        Ok(())
    }

    fn serialize_none(self) -> Done<()> {
        self.serialize_bool(false)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done<()> {
        self.writer.count(1);
        value.serialize(self)
    }

    fn serialize_unit(self) -> Done<()> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Done<()> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, variant: u32, _: &'static str) -> Done<()> {
        self.serialize_u32(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Done<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        value: &T,
    ) -> Done<()> {
        self.writer.count(variant.into());
        value.serialize(self)
    }

    fn serialize_seq(mut self, length: Option<usize>) -> Done<Self> {
        self.length(length)?;
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Done<Self> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Done<Self> {
        Ok(self)
    }

    fn serialize_tuple_variant(self, _: &'static str, variant: u32, _: &'static str, _: usize) -> Done<Self> {
        self.writer.count(variant.into());
        Ok(self)
    }

    fn serialize_map(mut self, length: Option<usize>) -> Done<Self> {
        self.length(length)?;
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Done<Self> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Done<Self> {
        self.writer.count(variant.into());
        Ok(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Generates trait implementations that encode the elements of a value one after the other.
macro_rules! encode_parts {
    ($($trait:ident: $method:ident($($key:ident)?)),* $(,)?) => {
        $(impl ser::$trait for CompactEncoder<'_> {
            type Ok = ();
            type Error = CompactFault;

            fn $method<T: Serialize + ?Sized>(&mut self, $($key: &'static str,)? value: &T) -> Done<()> {
                $(let _ = $key;)?
                value.serialize(CompactEncoder { writer: self.writer })
            }

            fn end(self) -> Done<()> {
                Ok(())
            }
        })*
    };
}

encode_parts! {
    SerializeSeq: serialize_element(),
    SerializeTuple: serialize_element(),
    SerializeTupleStruct: serialize_field(),
    SerializeTupleVariant: serialize_field(),
    SerializeStruct: serialize_field(key),
    SerializeStructVariant: serialize_field(key),
}

impl ser::SerializeMap for CompactEncoder<'_> {
    type Ok = ();
    type Error = CompactFault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done<()> {
        key.serialize(CompactEncoder { writer: self.writer })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done<()> {
        value.serialize(CompactEncoder { writer: self.writer })
    }

    fn end(self) -> Done<()> {
        Ok(())
    }
}
