package dev.penstock.cuda.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Needs no CUDA toolkit; cuda/ptx.sh checks that the bytes are what nvcc makes of the sources. */
class PtxTest {
    private static final Path SOURCES = Path.of("src/main/cuda");

    @Test
    void theShippedPtxIsOfTheseSources() throws Exception {
        List<String> lines = shipped();

        assertThat(lines.getFirst())
                .as("the sources changed: run cuda/ptx.sh make")
                .isEqualTo("// sources sha256 " + hashOfSources());
    }

    /** Drivers from CUDA 11 on read this version. */
    @Test
    void theShippedPtxIsOldEnoughForEveryDriver() throws Exception {
        assertThat(shipped()).contains(".version 7.0", ".target sm_80");
    }

    private static List<String> shipped() {
        return new String(GpuModule.ptx(), StandardCharsets.US_ASCII).lines().toList();
    }

    private static String hashOfSources() throws Exception {
        MessageDigest hash = MessageDigest.getInstance("SHA-256");
        for (String ending : List.of(".cu", ".cuh")) {
            for (Path file : sources(ending)) {
                hash.update((file.getFileName() + "\n").getBytes(StandardCharsets.UTF_8));
                hash.update(Files.readAllBytes(file));
            }
        }
        return HexFormat.of().formatHex(hash.digest());
    }

    private static List<Path> sources(String ending) throws IOException {
        try (Stream<Path> files = Files.list(SOURCES)) {
            return files.filter(file -> file.toString().endsWith(ending)).sorted().toList();
        }
    }
}
