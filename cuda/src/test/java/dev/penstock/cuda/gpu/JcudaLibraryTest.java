package dev.penstock.cuda.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class JcudaLibraryTest {
    /** Its name is public, and its size can be made the same. */
    @Test
    void aLibraryThatAnotherUserPutIntoTheTemporaryFolderIsNotLoaded(@TempDir Path folder)
            throws IOException {
        Path unpacked = JcudaLibrary.place(folder);
        byte[] whole = Files.readAllBytes(unpacked);
        Path planted = folder.resolve(unpacked.getFileName());
        Files.write(planted, new byte[whole.length]);

        Path again = JcudaLibrary.place(folder);

        assertThat(again).isNotEqualTo(planted);
        try (InputStream packed =
                JcudaLibrary.class.getResourceAsStream("/lib/" + unpacked.getFileName())) {
            assertThat(Files.readAllBytes(again))
                    .isEqualTo(Objects.requireNonNull(packed).readAllBytes());
        }
        assertThat(Files.getPosixFilePermissions(again.getParent()))
                .isEqualTo(PosixFilePermissions.fromString("rwx------"));
    }
}
