/**
 * Text to tokens and back: raw bytes, or GPT-2's byte-pair encoding. Start with {@link
 * dev.penstock.runtime.tokenizer.Tokenizer}.
 */
@NullMarked
package dev.penstock.runtime.tokenizer;

import org.jspecify.annotations.NullMarked;
