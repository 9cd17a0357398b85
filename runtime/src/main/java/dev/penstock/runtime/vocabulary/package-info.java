/**
 * Byte-level byte-pair tokenizers as data: their tokens, merges and special tokens, from other
 * programs' files and for them. Start with {@link dev.penstock.runtime.vocabulary.Vocabulary}.
 */
@NullMarked
package dev.penstock.runtime.vocabulary;

import org.jspecify.annotations.NullMarked;
