//! A queue on pages in memory.

use crate::queues::options::QueueOptions;
use crate::queues::read::QueueReader;
use crate::queues::writer::QueueWriter;
use tidalite_kv::Tree;
use tidalite_pager::Result;
use tidalite_testkit::ScratchPages;

pub(super) struct Table {
    pub(super) root: Tree,
    pub(super) pages: ScratchPages,
}

impl Table {
    pub(super) fn new(page_size: usize, options: QueueOptions) -> Self {
        let (mut root, mut pages) = (Tree::new(30), ScratchPages::new(page_size));
        drop(QueueWriter::create(&mut root, &mut pages, options).unwrap());
        Self { root, pages }
    }

    pub(super) fn write(&mut self) -> QueueWriter<'_, ScratchPages> {
        QueueWriter::open(&mut self.root, &mut self.pages).unwrap()
    }

    pub(super) fn read(&self) -> QueueReader<&ScratchPages> {
        QueueReader::open(&self.root, &self.pages).unwrap()
    }

    pub(super) fn problems(&self) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        QueueReader::open(&self.root, &self.pages)?.check(&mut |text| problems.push(text))?;
        Ok(problems)
    }

    /// Checks the queue and all its pages.
    pub(super) fn assert_whole(&self) {
        assert_eq!(self.problems().unwrap(), Vec::<String>::new());
        let mut claims = Vec::new();
        self.root
            .check(&self.pages, &mut |used| {
                claims.push((used.addr, used.pages))
            })
            .unwrap();
        self.pages.assert_all_claimed(&claims);
    }

    pub(super) fn commit(&mut self) {
        self.root.seal(&mut self.pages).unwrap();
        self.pages.commit();
    }
}
