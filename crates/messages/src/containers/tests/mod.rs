mod documents;
mod storage;
