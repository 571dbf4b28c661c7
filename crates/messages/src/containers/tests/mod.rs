mod documents;
mod documents_json;
