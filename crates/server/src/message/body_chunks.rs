//! Message bodies in chunks: a large body gets an envelope without being copied.

use std::io::IoSlice;

use bytes::{Buf, Bytes};
use consort_protocol::splice;
use consort_protocol::{Json, Object, RequestId};

/// From this size on, a copy costs more than a chunk of its own.
const LARGE: usize = 16 << 10;

/// A text in up to three chunks of memory. A small one is in a single chunk, the body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyChunks {
    head: Bytes,
    body: Bytes,
    tail: Bytes,
    /// Created here, and not yet charged to the memory budget.
    ours: bool,
    /// Line breaks, which occur between tokens only, are sent as spaces.
    on_one_line: bool,
}

impl From<Bytes> for BodyChunks {
    fn from(body: Bytes) -> Self {
        Self { body, ours: true, ..Self::default() }
    }
}

impl From<&Json> for BodyChunks {
    fn from(json: &Json) -> Self {
        Self { body: json.to_bytes(), ..Self::default() }
    }
}

impl BodyChunks {
    /// An object with members appended that are already serialized: `"a":1,"b":2`.
    pub fn extended(object: &Object, members: &[u8]) -> Self {
        let bytes = object.json().to_bytes();
        let comma: &[u8] = if object.is_empty() { b"" } else { b"," };
        let body = bytes.slice(..bytes.len() - 1);
        Self { body, tail: [comma, members, b"}"].concat().into(), ..Self::default() }
    }

    /// An object without the members of these names.
    pub fn without(object: &Object, names: &[&str]) -> Self {
        let mut written = vec![b'{'];
        let mut large: Option<(Vec<u8>, Bytes)> = None;
        let mut comma: &[u8] = b"";
        for (name, value) in object.members().filter(|(name, _)| !names.contains(name)) {
            for part in [comma, b"\"", name.as_bytes(), b"\":"] {
                written.extend_from_slice(part);
            }
            comma = b",";
            if large.is_none() && value.as_bytes().len() >= LARGE {
                large = Some((std::mem::take(&mut written), value.to_bytes()));
            } else {
                written.extend_from_slice(value.as_bytes());
            }
        }
        written.push(b'}');
        match large {
            None => Bytes::from(written).into(),
            Some((head, body)) => {
                Self { head: head.into(), body, tail: written.into(), ..Self::default() }
            }
        }
    }

    /// Wraps this as the result of a request.
    pub(crate) fn answering(self, id: &RequestId) -> Self {
        self.between(splice::response_head(id), splice::RESPONSE_TAIL)
    }

    /// Adds a prefix and a suffix.
    pub(crate) fn between<const N: usize>(self, before: [&[u8]; N], behind: &[u8]) -> Self {
        let Self { head, body, tail, .. } = &self;
        if body.len() < LARGE && !self.on_one_line {
            let size =
                before.iter().map(|part| part.len()).sum::<usize>() + self.len() + behind.len();
            let mut bytes = Vec::with_capacity(size);
            for part in &before {
                bytes.extend_from_slice(part);
            }
            for part in [head, body, tail, behind] {
                bytes.extend_from_slice(part);
            }
            return Bytes::from(bytes).into();
        }
        let head = [before.concat().as_slice(), head].concat().into();
        let tail = [tail, behind].concat().into();
        Self { head, tail, ..self }
    }

    /// True if its body is too large to be copied.
    pub(crate) fn is_large(&self) -> bool {
        self.body.len() >= LARGE
    }

    /// The same with spaces for line breaks, without a copy of the body.
    pub(crate) fn on_one_line(self) -> Self {
        let space = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
        let [head, tail] = [&self.head, &self.tail].map(|part| part.iter().map(space).collect());
        Self { head, tail, on_one_line: true, ..self }
    }

    /// True if it was created here: the message of an upstream server is charged to the memory budget already.
    pub(crate) fn is_ours(&self) -> bool {
        self.ours
    }

    pub(crate) fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// Its chunks in order.
    pub(crate) fn parts(&self) -> [&Bytes; 3] {
        [&self.head, &self.body, &self.tail]
    }

    /// The same in one chunk.
    pub fn into_bytes(self) -> Bytes {
        if self.len() == self.body.len() && !self.on_one_line {
            return self.body;
        }
        let mut left = self;
        left.copy_to_bytes(left.len())
    }

    /// Replaces the owner of the body, the only chunk that may be large.
    pub(crate) fn owned(self, by: impl FnOnce(Bytes) -> Bytes) -> Self {
        Self { body: by(self.body), ..self }
    }
}

impl BodyChunks {
    /// The bytes to send for the beginning of a chunk, and the rest.
    fn sent_first<'a>(&self, part: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let is_body = part.as_ptr_range().end == self.body.as_ptr_range().end;
        if !self.on_one_line || !is_body {
            return (part, &[]);
        }
        match memchr::memchr2(b'\n', b'\r', part) {
            Some(0) => (b" ", &part[1..]),
            Some(at) => part.split_at(at),
            None => (part, &[]),
        }
    }
}

impl Buf for BodyChunks {
    fn remaining(&self) -> usize {
        self.len()
    }

    fn chunk(&self) -> &[u8] {
        let part = self.parts().into_iter().find(|part| !part.is_empty());
        part.map_or(b"", |part| self.sent_first(part).0)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        for part in self.parts() {
            let mut rest: &[u8] = part;
            while !rest.is_empty() && count < slices.len() {
                let (first, behind) = self.sent_first(rest);
                slices[count] = IoSlice::new(first);
                count += 1;
                rest = behind;
            }
        }
        count
    }

    fn advance(&mut self, mut count: usize) {
        for part in [&mut self.head, &mut self.body, &mut self.tail] {
            let here = count.min(part.len());
            part.advance(here);
            count -= here;
        }
        assert_eq!(count, 0, "nobody sends more than there is");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: impl Into<Bytes>) -> Object {
        Json::parse(text).unwrap().to_object().unwrap()
    }

    fn texts(size: usize) -> [String; 4] {
        let long = "x".repeat(size);
        [
            "{}".to_owned(),
            format!(r#"{{"a":1,"b":"{long}","gone":2,"c": [ "{long}" ]}}"#),
            format!(r#"{{"gone":"{long}","b":"{long}"}}"#),
            format!(r#"{{"b":"{long}","gone":0}}"#),
        ]
    }

    #[test]
    fn a_large_result_is_answered_as_a_small_one_is() {
        for text in texts(10).into_iter().chain(texts(LARGE)) {
            let result = Json::parse(text).unwrap();
            let pieces = BodyChunks::from(&result).answering(&RequestId::from(7));
            assert_eq!(pieces.into_bytes(), splice::response(&RequestId::from(7), &result));
        }
    }

    #[test]
    fn members_are_added_and_left_out_alike_whatever_their_size() {
        for (small, large) in texts(10).into_iter().zip(texts(LARGE)) {
            let (short, long) = ("x".repeat(10), "x".repeat(LARGE));
            let shortened =
                |bytes: Bytes| String::from_utf8(bytes.into()).unwrap().replace(&long, &short);
            let (small, large) = (object(small), object(large));
            for change in [
                (|object| BodyChunks::extended(object, b"\"d\":3")) as fn(&Object) -> BodyChunks,
                |object| BodyChunks::without(object, &["gone"]),
                |object| BodyChunks::without(object, &["gone", "b"]),
            ] {
                let expected = change(&small).into_bytes();
                assert!(Json::parse(expected.clone()).is_ok());
                assert_eq!(shortened(change(&large).into_bytes()), expected);
            }
        }
    }

    #[test]
    fn the_body_is_never_copied() {
        let result = object(texts(LARGE)[1].clone());
        let value = result.get("b").unwrap();
        let pieces = BodyChunks::without(&result, &["gone"]).answering(&RequestId::from(1));
        assert_eq!(pieces.parts()[1].as_ptr(), value.as_bytes().as_ptr());
    }

    #[test]
    fn what_is_sent_in_part_goes_on_where_it_stopped() {
        let body = Bytes::from("y".repeat(LARGE));
        let pieces = BodyChunks::from(body).between([b"head"], b"tail");
        let whole = pieces.clone().into_bytes();
        for step in [1, 3, 5, LARGE, LARGE + 8] {
            let (mut left, mut sent) = (pieces.clone(), Vec::new());
            while left.has_remaining() {
                let mut slices = [IoSlice::new(&[]); 4];
                let count = left.chunks_vectored(&mut slices);
                let given: Vec<u8> =
                    slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect();
                assert_eq!(given, whole[sent.len()..]);
                assert_eq!(left.chunk(), &*slices[0]);
                let step = step.min(left.remaining());
                sent.extend_from_slice(&given[..step]);
                left.advance(step);
            }
            assert_eq!(sent, whole);
        }
    }
}
