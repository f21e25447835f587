//! Decoder of response bodies, by the framing that their head announces.

use bytes::{Buf, Bytes};

/// Limit of bytes of chunk extensions, and of trailers, in one response of a server.
const EXTRA_BYTES: usize = 16 << 10;
/// Limit of trailers of one response of a server.
const MOST_TRAILERS: usize = 32;

/// The rest of a body.
#[derive(Debug, Default)]
pub(crate) enum BodyDecoder {
    #[default]
    Done,
    /// Bytes that are left, by `Content-Length`.
    Length(u64),
    Chunked(ChunkDecoder),
    /// All bytes until the connection ends.
    UntilClose,
}

/// The state between two bytes of a chunked body.
#[derive(Debug, Default)]
pub(crate) struct ChunkDecoder {
    place: ChunkPlace,
    /// The size of the current chunk, or of its rest.
    size: u64,
    /// Bytes of extensions.
    extra: usize,
    trailers: Vec<u8>,
}

/// Place in a chunked body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkPlace {
    #[default]
    FirstDigit,
    Digits,
    Space,
    Extension,
    SizeEnd,
    Data,
    DataReturn,
    DataEnd,
    Trailers,
    Done,
}

impl BodyDecoder {
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Done | Self::Length(0) => true,
            Self::Length(_) | Self::UntilClose => false,
            Self::Chunked(chunks) => chunks.place == ChunkPlace::Done,
        }
    }

    /// Returns true if the end of the connection is the end of the body.
    pub(crate) fn ends_with_connection(&self) -> bool {
        matches!(self, Self::UntilClose)
    }

    /// Returns the bytes that are left, if the body has a length.
    pub(crate) fn remaining(&self) -> Option<u64> {
        match self {
            Self::Done => Some(0),
            Self::Length(left) => Some(*left),
            Self::Chunked(_) | Self::UntilClose => None,
        }
    }

    /// Counts bytes of a body with a length that were read elsewhere.
    pub(crate) fn skip(&mut self, count: usize) {
        if let Self::Length(left) = self {
            *left = left.saturating_sub(count as u64);
        }
    }

    /// Takes bytes of the body. Returns those of its content, `None` if there are none yet.
    pub(crate) fn decode(&mut self, bytes: &mut Bytes) -> Result<Option<Bytes>, String> {
        match self {
            Self::Done => Ok(None),
            Self::Length(left) => {
                let count =
                    usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left -= count as u64;
                Ok(Some(bytes.split_to(count)))
            }
            Self::UntilClose => Ok(Some(std::mem::take(bytes))),
            Self::Chunked(chunks) => chunks.decode(bytes),
        }
    }
}

impl ChunkDecoder {
    fn decode(&mut self, bytes: &mut Bytes) -> Result<Option<Bytes>, String> {
        while self.place != ChunkPlace::Done && !bytes.is_empty() {
            if self.place == ChunkPlace::Data {
                let count =
                    usize::try_from(self.size).map_or(bytes.len(), |left| left.min(bytes.len()));
                self.size -= count as u64;
                if self.size == 0 {
                    self.place = ChunkPlace::DataReturn;
                }
                return Ok(Some(bytes.split_to(count)));
            }
            self.step(bytes.get_u8())?;
        }
        Ok(None)
    }

    /// Takes a byte of the framing.
    fn step(&mut self, byte: u8) -> Result<(), String> {
        use ChunkPlace::{
            Data, DataEnd, DataReturn, Digits, Done, Extension, FirstDigit, SizeEnd, Space,
            Trailers,
        };
        self.place = match (self.place, byte) {
            (FirstDigit | Digits, byte) if byte.is_ascii_hexdigit() => {
                self.add_digit(byte)?;
                Digits
            }
            (Digits | Space | Extension, b'\r') => SizeEnd,
            (Digits | Space, b' ' | b'\t') => Space,
            (Digits | Space, b';') => Extension,
            (Extension, byte) if byte != b'\n' => {
                self.extra += 1;
                if self.extra > EXTRA_BYTES {
                    return Err(format!("chunk extensions of more than {EXTRA_BYTES} bytes"));
                }
                Extension
            }
            (SizeEnd, b'\n') if self.size == 0 => Trailers,
            (SizeEnd, b'\n') => Data,
            (DataReturn, b'\r') => DataEnd,
            (DataEnd, b'\n') => FirstDigit,
            (Trailers, byte) => return self.add_trailer(byte),
            (Done, _) => Done,
            (FirstDigit | Digits | Space | Extension, _) => {
                return Err("invalid chunk size".to_owned());
            }
            (SizeEnd | Data | DataReturn | DataEnd, _) => {
                return Err("a chunk does not end with CR LF".to_owned());
            }
        };
        Ok(())
    }

    fn add_digit(&mut self, byte: u8) -> Result<(), String> {
        let digit = char::from(byte).to_digit(16).unwrap_or_default();
        let size = self.size.checked_mul(16).and_then(|size| size.checked_add(digit.into()));
        self.size = size.ok_or("a chunk size of more than 64 bits")?;
        Ok(())
    }

    fn add_trailer(&mut self, byte: u8) -> Result<(), String> {
        self.trailers.push(byte);
        if self.trailers.len() > EXTRA_BYTES {
            return Err(format!("trailers of more than {EXTRA_BYTES} bytes"));
        }
        if byte != b'\n' {
            return Ok(());
        }
        if !self.trailers.ends_with(b"\r\n") {
            return Err("a trailer does not end with CR LF".to_owned());
        }
        if self.trailers == b"\r\n" || self.trailers.ends_with(b"\r\n\r\n") {
            let mut trailers = [httparse::EMPTY_HEADER; MOST_TRAILERS];
            httparse::parse_headers(&self.trailers, &mut trailers)
                .map_err(|error| format!("invalid trailers: {error}"))?;
            self.trailers = Vec::new();
            self.place = ChunkPlace::Done;
        }
        Ok(())
    }
}
