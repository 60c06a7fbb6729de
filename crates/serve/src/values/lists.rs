//! Lists as arrays, in both formats.

use std::ops::Range;

use arrow::array::{ArrayRef, AsArray, GenericListArray, OffsetSizeTrait};
use bytes::{BufMut, BytesMut};
use pgwire::api::Type;

use crate::types::{PgType, element_of};
use crate::values::{Column, Format, ValueError, Write, column, out_of_range};

/// Returns the elements of a list with the offsets of each row.
fn elements<O: OffsetSizeTrait>(
    array: &ArrayRef,
    base: &Type,
    format: Format,
) -> Result<(Column, GenericListArray<O>), ValueError> {
    let list = array.as_list::<O>().clone();
    let base = element_of(base).unwrap_or(Type::TEXT);
    let element = column(list.values(), &PgType { base, modifier: -1 }, format)?;
    Ok((element, list))
}

/// Rows of the elements that belong to a list.
fn range_of<O: OffsetSizeTrait>(list: &GenericListArray<O>, row: usize) -> Range<usize> {
    let offset = |at: usize| list.value_offsets().get(at).map_or(0, |offset| offset.as_usize());
    offset(row)..offset(row + 1)
}

pub(super) fn list_text<O: OffsetSizeTrait>(array: &ArrayRef, base: &Type) -> Result<Write, ValueError> {
    let (element, list) = elements::<O>(array, base, Format::Text)?;
    if *base == Type::INT2_VECTOR {
        return Ok(Box::new(move |row, out| {
            for (at, row) in range_of(&list, row).enumerate() {
                if at > 0 {
                    out.put_u8(b' ');
                }
                element.write(row, out)?;
            }
            Ok(())
        }));
    }
    Ok(Box::new(move |row, out| {
        out.put_u8(b'{');
        let mut value = BytesMut::new();
        for (at, row) in range_of(&list, row).enumerate() {
            if at > 0 {
                out.put_u8(b',');
            }
            if element.is_null(row) {
                out.put_slice(b"NULL");
                continue;
            }
            value.clear();
            element.write(row, &mut value)?;
            let is_plain = !value.is_empty()
                && !value.eq_ignore_ascii_case(b"null")
                && value.iter().all(|byte| !b"{},\"\\ \t\n\r\x0b\x0c".contains(byte));
            if is_plain {
                out.put_slice(&value);
                continue;
            }
            out.put_u8(b'"');
            for byte in &value {
                if matches!(byte, b'"' | b'\\') {
                    out.put_u8(b'\\');
                }
                out.put_u8(*byte);
            }
            out.put_u8(b'"');
        }
        out.put_u8(b'}');
        Ok(())
    }))
}

pub(super) fn list_binary<O: OffsetSizeTrait>(array: &ArrayRef, base: &Type) -> Result<Write, ValueError> {
    let (element, list) = elements::<O>(array, base, Format::Binary)?;
    let oid = element_of(base).unwrap_or(Type::TEXT).oid();
    Ok(Box::new(move |row, out| {
        let rows = range_of(&list, row);
        let has_null = rows.clone().any(|row| element.is_null(row));
        out.put_i32(i32::from(!rows.is_empty()));
        out.put_i32(i32::from(has_null));
        out.put_u32(oid);
        if !rows.is_empty() {
            out.put_i32(i32::try_from(rows.len()).map_err(|_| out_of_range("array", rows.len()))?);
            // Arrays are counted from 1.
            out.put_i32(1);
        }
        rows.into_iter().try_for_each(|row| element.write_with_length(row, out))
    }))
}
