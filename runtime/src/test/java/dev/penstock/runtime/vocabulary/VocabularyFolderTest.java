package dev.penstock.runtime.vocabulary;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.runtime.tokenizer.TokenizerFileException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class VocabularyFolderTest {
    @TempDir private Path folder;

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{\"a\": 0, \"b\": 0} | expected one token for each number, got 'a' and 'b' for 0",
                "{\"a\": 0, \"b\": -1} | got -1 for 'b'",
                "{\"a\": 0, \"b\": 9000000} | got 2 tokens with numbers up to 9000000",
                "{\"a\": 0, \"b\": 99999999999} | expected numbers of tokens from 0 to 9999999",
            })
    void numbersThatAreNoneAreRefusedByAllWhoReadThem(String vocabulary, String problem)
            throws IOException {
        Files.writeString(folder.resolve("vocab.json"), vocabulary);
        Files.writeString(folder.resolve("merges.txt"), "");

        assertThatThrownBy(() -> Vocabulary.in(folder))
                .isInstanceOf(TokenizerFileException.class)
                .hasMessageContaining(problem);
        assertThatThrownBy(() -> Tokenizer.open(folder.toString()))
                .isInstanceOf(TokenizerFileException.class)
                .hasMessageContaining(problem);
    }

    @Test
    void aTokenWithTwoNumbersIsRefused() throws IOException {
        Files.writeString(folder.resolve("vocab.json"), "{\"a\": 0, \"a\": 1}");
        Files.writeString(folder.resolve("merges.txt"), "");

        assertThatThrownBy(() -> Vocabulary.in(folder))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("vocab.json: not JSON: Duplicate field 'a'");
        assertThatThrownBy(() -> Tokenizer.open(folder.toString()))
                .isInstanceOf(TokenizerFileException.class)
                .hasMessageContaining("expected one number for each token, got 0 and 1 for 'a'");
    }

    @Test
    void aNumberThatIsNotUsedGetsATokenOfItsOwnName() throws IOException {
        Files.writeString(folder.resolve("vocab.json"), "{\"a\": 0, \"[PAD1]\": 2}");
        Files.writeString(folder.resolve("merges.txt"), "");

        assertThat(Vocabulary.in(folder).orElseThrow().tokens())
                .containsExactly("a", "[[PAD1]]", "[PAD1]");
    }

    /** Sparse files: whoever began to read one would need their size in memory. */
    @ParameterizedTest
    @ValueSource(strings = {"tokenizer.json", "vocab.json", "merges.txt"})
    void aFileTooLargeForATokenizerIsNotRead(String name) throws IOException {
        Files.writeString(folder.resolve("vocab.json"), "{\"a\": 0}");
        Files.writeString(folder.resolve("merges.txt"), "");
        try (RandomAccessFile file = new RandomAccessFile(folder.resolve(name).toFile(), "rw")) {
            file.setLength(1L << 33);
        }

        assertThatThrownBy(() -> Vocabulary.in(folder))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining(name + ": expected a tokenizer's file of at most 128 MiB");
    }
}
