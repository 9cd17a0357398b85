package dev.penstock.runtime.data;

/** The content of the files of a run's data. */
public enum DataFormat {
    /** Plain text; each file is one document. */
    TEXT,
    /** One JSON object per line; each line's text field is one document. */
    JSONL,
    /** One JSON object per line; each line's messages, written by a template, are one document. */
    CHAT,
    /** A Parquet file; each row's text column is one document. */
    PARQUET,
    /**
     * A folder that {@link DataPreparation} made, or one safetensors file with {@code tokens}, I64
     * {@code [step, batch, context + 1]}.
     */
    TOKENS,
    /** Nothing: the program that trains gives the tokens. */
    GIVEN
}
