package dev.penstock.runtime.config.reading;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FileCauseTest {
    @TempDir private Path folder;

    @Test
    void causesAreToldInPlainWords() throws IOException {
        Path missing = folder.resolve("missing");
        Path latin = folder.resolve("latin");
        Files.write(latin, new byte[] {(byte) 0xe4});

        assertThat(FileCause.of(failure(() -> Files.readString(missing))))
                .isEqualTo("no such file");
        assertThat(FileCause.withFile(failure(() -> Files.readString(missing))))
                .isEqualTo(missing + ": no such file");
        assertThat(FileCause.of(failure(() -> Files.readString(latin))))
                .isEqualTo("not UTF-8 text");
        assertThat(FileCause.of(failure(() -> Files.readString(folder))))
                .isEqualTo("Is a directory");
        assertThat(FileCause.of(failure(() -> Files.createFile(latin.resolve("below")))))
                .isEqualTo("Not a directory");
    }

    private static IOException failure(ThrowingCallable call) {
        return catchThrowableOfType(IOException.class, call);
    }
}
