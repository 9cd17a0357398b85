package dev.penstock.runtime.starter;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.data.Corpus;
import dev.penstock.runtime.data.DataFormat;
import dev.penstock.runtime.launch.RunParts;
import dev.penstock.runtime.launch.RunStart;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class StarterFolderTest {
    private static final Machine LAPTOP = new Machine(2, 16L << 30);
    private static final Machine SERVER = new Machine(64, 256L << 30);

    @TempDir Path folder;

    @ParameterizedTest
    @EnumSource
    void everySizeTrainsOnTheLeastTextThatItAsksFor(StarterSize size) throws IOException {
        Files.writeString(folder.resolve("a.txt"), "x".repeat((int) size.leastBytes()));

        StarterFolder.Written written = new StarterFolder(folder, LAPTOP).write(size);

        RunParts parts = prepared(written);
        assertThat(parts.model().shape().parameters()).isEqualTo(size.parameters());
        assertThat(parts.data().hasHeldOut()).isTrue();
    }

    @Test
    void aMachineWithOneCoreGetsOneStage() throws IOException {
        var written = new StarterFolder(folder, new Machine(1, 1L << 30)).write(null);

        assertThat(prepared(written).config().pipeline().stages()).isEqualTo(1);
    }

    @Test
    void sizesGrowWithTextAndMachine() {
        assertThat(StarterSize.of(3_000, SERVER)).isEqualTo(StarterSize.TINY);
        assertThat(StarterSize.of(300_000, SERVER)).isEqualTo(StarterSize.SMALL);
        assertThat(StarterSize.of(3_000_000, SERVER)).isEqualTo(StarterSize.MEDIUM);
        assertThat(StarterSize.of(300_000_000, SERVER)).isEqualTo(StarterSize.LARGE);
        assertThat(StarterSize.of(300_000_000, LAPTOP)).isEqualTo(StarterSize.MEDIUM);
        assertThat(StarterSize.of(300_000_000, new Machine(1, 1L << 30)))
                .isEqualTo(StarterSize.SMALL);
        assertThat(StarterSize.of(300_000_000, new Machine(1, 1L << 28)))
                .isEqualTo(StarterSize.TINY);
    }

    @Test
    void textsBesideAreReadAndNothingElse() throws IOException {
        Files.writeString(folder.resolve("a.txt"), "a".repeat(1_000));
        Files.writeString(folder.resolve("B.TXT"), "b".repeat(2_000));
        Files.writeString(folder.resolve("notes.md"), "c".repeat(4_000));
        Files.writeString(folder.resolve(".hidden.txt"), "d".repeat(8_000));
        Files.writeString(folder.resolve("picture.png"), "e".repeat(16_000));

        StarterFolder.Written written = new StarterFolder(folder, LAPTOP).write(null);

        assertThat(written.sample()).isFalse();
        assertThat(written.files()).isEqualTo(3);
        assertThat(written.bytes()).isEqualTo(7_000);
        assertThat(tokens(written)).isEqualTo(7_000 + 2); // separators
    }

    @Test
    void textsInTheSubfolderAreReadWithPackedOnes() throws IOException {
        Path deep = Files.createDirectories(folder.resolve("text/deep"));
        Files.writeString(folder.resolve("text/a.txt"), "a".repeat(1_000));
        try (var out = new GZIPOutputStream(Files.newOutputStream(deep.resolve("b.txt.gz")))) {
            out.write("b".repeat(5_000).getBytes(UTF_8));
        }
        Files.writeString(folder.resolve("text/list.csv"), "e".repeat(16_000));

        StarterFolder.Written written = new StarterFolder(folder, LAPTOP).write(null);

        assertThat(written.bytes()).isEqualTo(6_000);
        assertThat(tokens(written)).isEqualTo(6_000 + 1); // a separator
    }

    @Test
    void whatIsInTheWayIsNamedAtOnceAndKept() throws IOException {
        Files.writeString(folder.resolve("README"), "mine");
        Files.writeString(folder.resolve("train.conf"), "mine, too");

        assertThatThrownBy(() -> new StarterFolder(folder, LAPTOP).write(null))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining(folder.resolve("README").toString())
                .hasMessageContaining(folder.resolve("train.conf").toString())
                .hasMessageContaining("nothing is overwritten");

        assertThat(folder.resolve("README")).hasContent("mine");
        assertThat(folder.resolve("text")).doesNotExist();
    }

    @Test
    void aFolderOfOtherFilesIsRefusedAndLeftAlone() throws IOException {
        Files.writeString(folder.resolve("picture.png"), "no text");

        assertThatThrownBy(() -> new StarterFolder(folder, LAPTOP).write(null))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("picture.png");

        try (var list = Files.list(folder)) {
            assertThat(list).hasSize(1);
        }
    }

    @Test
    void aTextThatIsTooShortForItsSizeIsRefused() throws IOException {
        Files.writeString(folder.resolve("a.txt"), "x".repeat(1_500));

        assertThatThrownBy(() -> new StarterFolder(folder, LAPTOP).write(StarterSize.MEDIUM))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("--size: expected at least 5,160 bytes");
        Files.writeString(folder.resolve("a.txt"), "x".repeat(1_000));
        assertThatThrownBy(() -> new StarterFolder(folder, LAPTOP).write(null))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("DIR: expected at least 1,320 bytes");

        assertThat(folder.resolve("train.conf")).doesNotExist();
    }

    private static int tokens(StarterFolder.Written written) {
        Path source = prepared(written).config().data().source();
        return Corpus.find(List.of(source), Optional.of(DataFormat.TEXT), "")
                .tokens(Tokenizer.open("bytes"))
                .length;
    }

    private static RunParts prepared(StarterFolder.Written written) {
        RunParts parts =
                RunParts.prepare(
                        ConfigLoader.draft(written.configuration(), List.of()),
                        RunStart.fresh(),
                        List.of());
        parts.start().close();
        return parts;
    }
}
