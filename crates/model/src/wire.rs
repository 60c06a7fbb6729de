//! Exact binary encoding of values: sent between machines that run the same version of the program,
//! and stored in profiles of evaluations. A change of the encoding must raise the version of
//! profiles.
//!
//! ```text
//! sealed    the encoded values, then their XXH3-64 checksum
//! number    seven bits per byte, lowest first; the eighth bit says that more bytes follow
//! words     a count, then eight bytes per number, for numbers that use all 64 bits
//! float     its eight bytes
//! option    0, or 1 and the value
//! list      a count, then each item; a text is the list of its bytes
//! ```
//! Words, floats and checksums are little-endian. Truncated or damaged input is an error, and takes
//! no more memory than its size suggests.

use twox_hash::XxHash3_64;

use crate::units::{Micros, PartitionId};

/// Bytes per word.
const WORD: usize = size_of::<u64>();

/// An error in the encoded bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireError(pub &'static str);

/// A value that can be sent.
pub trait Wire: Sized {
    /// Appends the encoded value to `bytes`.
    fn put(&self, bytes: &mut Vec<u8>);

    /// Decodes the value from the beginning of `left`.
    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError>;
}

/// Bytes that are not decoded yet.
#[derive(Debug)]
pub struct WireReader<'a>(&'a [u8]);

/// Encodes values and appends a checksum.
pub fn seal(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes);
    let sum = XxHash3_64::oneshot(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Returns the encoded values if the checksum is right.
pub fn unseal(sealed: &[u8]) -> Result<WireReader<'_>, WireError> {
    let (bytes, sum) = sealed.split_last_chunk::<WORD>().ok_or(WireError("it is cut"))?;
    if XxHash3_64::oneshot(bytes) != u64::from_le_bytes(*sum) {
        return Err(WireError("its checksum is wrong"));
    }
    Ok(WireReader(bytes))
}

impl<'a> WireReader<'a> {
    /// Takes the next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (bytes, left) = self.0.split_at_checked(count).ok_or(WireError("it ends early"))?;
        self.0 = left;
        Ok(bytes)
    }

    /// Takes the next word.
    fn word(&mut self) -> Result<u64, WireError> {
        let (word, left) = self.0.split_first_chunk::<WORD>().ok_or(WireError("it ends early"))?;
        self.0 = left;
        Ok(u64::from_le_bytes(*word))
    }

    /// Takes the words that [`put_words`] wrote.
    pub fn words(&mut self) -> Result<impl ExactSizeIterator<Item = u64> + use<'a>, WireError> {
        let count = usize::take(self)?.checked_mul(WORD).ok_or(WireError("it has too many words"))?;
        Ok(self.bytes(count)?.as_chunks::<WORD>().0.iter().map(|word| u64::from_le_bytes(*word)))
    }

    /// Checks that no bytes are left.
    pub fn end(self) -> Result<(), WireError> {
        if self.0.is_empty() { Ok(()) } else { Err(WireError("it is too long")) }
    }
}

/// Encodes numbers that use all 64 bits.
pub fn put_words(words: impl IntoIterator<Item = u64>, count: usize, bytes: &mut Vec<u8>) {
    count.put(bytes);
    bytes.reserve(count * WORD);
    words.into_iter().take(count).for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
}

/// Encodes bytes verbatim; they decode as a list of bytes.
pub fn put_bytes(more: &[u8], bytes: &mut Vec<u8>) {
    more.len().put(bytes);
    bytes.extend_from_slice(more);
}

/// Takes the bytes that [`put_bytes`] wrote.
pub fn take_bytes<'a>(left: &mut WireReader<'a>) -> Result<&'a [u8], WireError> {
    let count = usize::take(left)?;
    left.bytes(count)
}

/// Implements `Wire` for a struct: its fields, in order.
#[macro_export]
macro_rules! wire {
    ($type:ty { $($field:ident),+ $(,)? }) => {
        impl $crate::wire::Wire for $type {
            fn put(&self, bytes: &mut Vec<u8>) {
                $($crate::wire::Wire::put(&self.$field, bytes);)+
            }

            fn take(left: &mut $crate::wire::WireReader<'_>) -> Result<Self, $crate::wire::WireError> {
                Ok(Self { $($field: $crate::wire::Wire::take(left)?),+ })
            }
        }
    };
}
pub use crate::wire;

impl Wire for u64 {
    fn put(&self, bytes: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let mut number = 0;
        for shift in (0..Self::BITS).step_by(7) {
            let byte = left.bytes(1)?.first().copied().unwrap_or_default();
            number |= Self::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(WireError("a number is too long"))
    }
}

impl Wire for u32 {
    fn put(&self, bytes: &mut Vec<u8>) {
        u64::from(*self).put(bytes);
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        Self::try_from(u64::take(left)?).map_err(|_| WireError("a number is too large"))
    }
}

impl Wire for usize {
    fn put(&self, bytes: &mut Vec<u8>) {
        (*self as u64).put(bytes);
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        Self::try_from(u64::take(left)?).map_err(|_| WireError("a number is too large"))
    }
}

impl Wire for i64 {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.cast_unsigned().put(bytes);
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        u64::take(left).map(u64::cast_signed)
    }
}

impl Wire for f64 {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_bits().to_le_bytes());
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        left.word().map(Self::from_bits)
    }
}

impl Wire for bool {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self));
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        match left.bytes(1)? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(WireError("invalid boolean")),
        }
    }
}

impl Wire for String {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), bytes);
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let text = std::str::from_utf8(take_bytes(left)?);
        text.map(str::to_owned).map_err(|_| WireError("invalid UTF-8"))
    }
}

impl Wire for Box<[u8]> {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_bytes(self, bytes);
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        take_bytes(left).map(Self::from)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.is_some().put(bytes);
        if let Some(value) = self {
            value.put(bytes);
        }
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        if bool::take(left)? { T::take(left).map(Some) } else { Ok(None) }
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.len().put(bytes);
        self.iter().for_each(|item| item.put(bytes));
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let count = usize::take(left)?;
        // Grows with the items that are decoded; the stated count is not trusted with an
        // allocation.
        (0..count).map(|_| T::take(left)).collect()
    }
}

impl<T: Wire + Copy + Default, const N: usize> Wire for [T; N] {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.iter().for_each(|item| item.put(bytes));
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let mut items = [T::default(); N];
        for item in &mut items {
            *item = T::take(left)?;
        }
        Ok(items)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
        self.1.put(bytes);
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        Ok((A::take(left)?, B::take(left)?))
    }
}

/// A key value: text, a boolean, a whole number or null. Fractions do not round-trip exactly.
impl Wire for serde_json::Value {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.to_string().put(bytes);
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        serde_json::from_slice(take_bytes(left)?).map_err(|_| WireError("invalid value"))
    }
}

impl Wire for Micros {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.get().put(bytes);
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        i64::take(left).map(Self::new)
    }
}

impl Wire for PartitionId {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        u32::take(left).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Sample {
        numbers: Vec<(u64, i64)>,
        float: f64,
        text: Option<String>,
        four: [u64; 4],
        value: serde_json::Value,
    }
    wire!(Sample { numbers, float, text, four, value });

    fn sample() -> Sample {
        Sample {
            numbers: vec![(0, -1), (127, i64::MAX), (128, i64::MIN), (u64::MAX, 0)],
            float: 0.1 + 0.2,
            text: Some("é".to_owned()),
            four: [1, 2, 3, 4],
            value: serde_json::json!(["a\"", null, true, u64::MAX, i64::MIN]),
        }
    }

    fn opened(sealed: &[u8]) -> Result<Sample, WireError> {
        let mut left = unseal(sealed)?;
        let sample = Sample::take(&mut left)?;
        left.end().map(|()| sample)
    }

    #[test]
    fn values_come_back_as_they_were_put() {
        let sealed = seal(|bytes| sample().put(bytes));
        assert_eq!(opened(&sealed), Ok(sample()));
        let words = seal(|bytes| put_words([1, u64::MAX], 2, bytes));
        assert_eq!(unseal(&words).unwrap().words().unwrap().collect::<Vec<_>>(), [1, u64::MAX]);
    }

    #[test]
    fn what_is_cut_or_damaged_is_told() {
        let sealed = seal(|bytes| sample().put(bytes));
        for end in 0..sealed.len() {
            assert!(opened(&sealed[..end]).is_err(), "{end}");
        }
        for bit in 0..sealed.len() * 8 {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(opened(&damaged).is_err(), "{bit}");
        }
    }

    #[test]
    fn a_length_that_is_not_there_takes_no_memory() {
        let sealed = seal(|bytes| u64::MAX.put(bytes));
        assert!(Vec::<u64>::take(&mut unseal(&sealed).unwrap()).is_err());
        assert!(String::take(&mut unseal(&sealed).unwrap()).is_err());
        assert!(unseal(&sealed).unwrap().words().is_err());
    }

    proptest! {
        #[test]
        fn numbers_come_back_and_any_bytes_are_read_without_harm(
            numbers in proptest::collection::vec(any::<u64>(), 0..20),
            junk in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let sealed = seal(|bytes| numbers.put(bytes));
            prop_assert_eq!(Vec::take(&mut unseal(&sealed).unwrap()), Ok(numbers));
            let sealed = seal(|bytes| bytes.extend_from_slice(&junk));
            let read = opened(&sealed);
            prop_assert!(read.is_err() || read.is_ok());
        }
    }
}
