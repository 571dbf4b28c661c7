//! A macro for storages that wrap another storage and implement only the methods in which they differ.

/// Implements methods of [`Storage`](tidalite_pager::Storage) by calls of the same methods of a field. Inside the
/// `impl` write `forward_storage!(disk: read_at, sync);`.
#[macro_export]
macro_rules! forward_storage {
    (@ $to:ident read_at) => {
        fn read_at(&self, at: u64, bytes: &mut [u8]) -> std::io::Result<()> {
            self.$to.read_at(at, bytes)
        }
    };
    (@ $to:ident write_at) => {
        fn write_at(&self, at: u64, bytes: &[u8]) -> std::io::Result<()> {
            self.$to.write_at(at, bytes)
        }
    };
    (@ $to:ident sync) => {
        fn sync(&self) -> std::io::Result<()> {
            self.$to.sync()
        }
    };
    (@ $to:ident sync_all) => {
        fn sync_all(&self) -> std::io::Result<()> {
            self.$to.sync_all()
        }
    };
    (@ $to:ident len) => {
        fn len(&self) -> std::io::Result<u64> {
            self.$to.len()
        }
    };
    (@ $to:ident grow) => {
        fn grow(&self, len: u64, how: tidalite_pager::Growth) -> std::io::Result<()> {
            self.$to.grow(len, how)
        }
    };
    ($to:ident: $($call:ident),+) => {
        $($crate::forward_storage!(@ $to $call);)+
    };
}
