//! Where the events of a chunk stand, and the values of some fields: for who writes a trace anew.

use crate::json::{Cursor, Read, Refusal};

/// Find the events of a chunk; their number.
///
/// Of each event stand in `into`: where it starts and ends in the text, and for each of `keys`
/// where its value starts and ends in the event, both 0 where it has none.
pub fn offsets(text: &[u8], keys: &[&[u8]], into: &mut [u32]) -> Read<usize> {
    if u32::try_from(text.len()).is_err() {
        return Err(Refusal::Size);
    }
    std::str::from_utf8(text).map_err(|_| Refusal::Grammar)?;
    let mut cursor = Cursor { text, at: 0 };
    let mut rows = into.chunks_exact_mut(2 * keys.len() + 2);
    let (mut count, mut unused) = (0, Vec::new());
    cursor.skip_space();
    while cursor.at < text.len() {
        if count > 0 {
            cursor.pass(b',')?;
        }
        event(&mut cursor, keys, rows.next().ok_or(Refusal::Size)?, &mut unused)?;
        count += 1;
        cursor.skip_space();
    }
    Ok(count)
}

fn event(cursor: &mut Cursor, keys: &[&[u8]], row: &mut [u32], unused: &mut Vec<u8>) -> Read<()> {
    let start = cursor.at;
    row.fill(0);
    cursor.pass(b'{')?;
    let mut more = cursor.byte() != b'}';
    cursor.at += usize::from(!more);
    while more {
        let name = cursor.string()?;
        if name.is_escaped {
            return Err(Refusal::Key); // it may be one of those
        }
        cursor.pass(b':')?;
        let from = cursor.at - start;
        unused.clear();
        cursor.value(unused)?;
        let name = &cursor.text[name.start..name.end];
        if let Some(key) = keys.iter().position(|key| *key == name) {
            let place = &mut row[2 * key + 2..2 * key + 4];
            if place[0] > 0 {
                return Err(Refusal::Key);
            }
            place.copy_from_slice(&[from as u32, (cursor.at - start) as u32]);
        }
        more = cursor.goes_on(b'}')?;
    }
    row[..2].copy_from_slice(&[start as u32, cursor.at as u32]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_values_are_where_they_stand() {
        let text = br#"{"ph": "X", "ts": 5}, {"name":"a"}"#;
        let mut into = [9; 12];
        assert_eq!(offsets(text, &[b"ph", b"ts"], &mut into), Ok(2));
        assert_eq!(into, [0, 20, 7, 10, 18, 19, 22, 34, 0, 0, 0, 0]);
    }

    #[test]
    fn what_is_not_plain_is_refused() {
        for (text, refusal) in [
            (&br#"{"ph": "X", "ph": "Y"}"#[..], Refusal::Key),
            (br#"{"p\u0068": "X"}"#, Refusal::Key),
            (br#"{"ph": "X"} {"ph": "Y"}"#, Refusal::Grammar),
            (br#"{"ph": "X""#, Refusal::Grammar),
            (b"{\"ph\": \"\xff\"}", Refusal::Grammar),
            (br#"{}, {}, {}"#, Refusal::Size),
        ] {
            assert_eq!(offsets(text, &[b"ph"], &mut [0; 8]), Err(refusal), "{}", text.escape_ascii());
        }
    }
}
