/**
 * Text to tokens and back: raw bytes, GPT-2's byte-pair encoding, another one of its kind from
 * files or learned here, or whatever Hugging Face's library reads. Start with {@link
 * dev.penstock.runtime.tokenizer.Tokenizer}.
 */
@NullMarked
package dev.penstock.runtime.tokenizer;

import org.jspecify.annotations.NullMarked;
