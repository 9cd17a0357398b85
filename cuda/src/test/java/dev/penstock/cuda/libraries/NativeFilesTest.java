package dev.penstock.cuda.libraries;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NativeFilesTest {
    private static final String RESOURCE = "/org/bytedeco/dnnl/linux-x86_64/libgomp.so.1";

    private static byte[] content() throws IOException {
        try (InputStream in = NativeFilesTest.class.getResourceAsStream(RESOURCE)) {
            return Objects.requireNonNull(in).readAllBytes();
        }
    }

    @Test
    void aResourceIsUnpackedOnceIntoAPrivateDirectory(@TempDir Path base) throws IOException {
        Path file = new NativeFiles(base).unpack(RESOURCE);

        assertThat(file.getFileName()).hasToString("libgomp.so.1");
        assertThat(Files.readAllBytes(file)).isEqualTo(content());
        assertThat(Files.getPosixFilePermissions(file.getParent()))
                .isEqualTo(PosixFilePermissions.fromString("rwx------"));
        var written = Files.getLastModifiedTime(file);
        assertThat(new NativeFiles(base).unpack(RESOURCE)).isEqualTo(file);
        assertThat(Files.getLastModifiedTime(file)).isEqualTo(written);
    }

    @Test
    void halfAFileIsReplaced(@TempDir Path base) throws IOException {
        Path file = new NativeFiles(base).unpack(RESOURCE);
        Files.write(file, new byte[] {1, 2, 3});

        new NativeFiles(base).unpack(RESOURCE);

        assertThat(Files.readAllBytes(file)).isEqualTo(content());
        try (Stream<Path> files = Files.list(file.getParent())) {
            assertThat(files).containsExactly(file);
        }
    }

    @Test
    void aDirectoryThatOthersCanWriteToIsNotUsed(@TempDir Path base) throws IOException {
        Path file = new NativeFiles(base).unpack(RESOURCE);
        Files.setPosixFilePermissions(
                file.getParent(), PosixFilePermissions.fromString("rwxrwxrwx"));

        Path other = new NativeFiles(base).unpack(RESOURCE);

        assertThat(other.getParent()).isNotEqualTo(file.getParent());
        assertThat(Files.readAllBytes(other)).isEqualTo(content());
    }

    @Test
    void aMissingResourceIsNamed(@TempDir Path base) {
        assertThatThrownBy(() -> new NativeFiles(base).unpack("/no/such.so"))
                .isInstanceOf(IOException.class)
                .hasMessage("there is no /no/such.so on the class path");
    }
}
