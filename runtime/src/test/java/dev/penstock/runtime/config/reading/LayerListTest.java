package dev.penstock.runtime.config.reading;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class LayerListTest {
    private static List<String> kinds(String... entries) {
        return LayerList.of(List.of(entries)).orElseThrow().kinds();
    }

    @Test
    void entriesAreRepeatedInTheirOrder() {
        assertThat(kinds("dense", "2 x local(8)", "retention"))
                .containsExactly("dense", "local(8)", "local(8)", "retention");
        assertThat(kinds("2 x (dense, 2 x (local(3), retention))"))
                .containsExactly(
                        "dense",
                        "local(3)",
                        "retention",
                        "local(3)",
                        "retention",
                        "dense",
                        "local(3)",
                        "retention",
                        "local(3)",
                        "retention");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "full",
                "local",
                "local(0)",
                "0 x dense",
                "x dense",
                "2 dense",
                "2 x",
                "2 x ()",
                "2 x (dense, )",
                "2 x (dense",
                "2 x (dense))",
                "2 x (dense), (dense)",
                "(dense, local(2))",
                "10001 x dense",
                "9999 x (9999 x (9999 x dense))"
            })
    void whatIsNoKindOrTooManyLayersIsNoList(String entry) {
        assertThat(LayerList.of(List.of("dense", entry))).isEmpty();
    }

    @Test
    void aListIsWrittenBrieflyAndGoesOnFromItsBeginning() {
        List<String> kinds = kinds("3 x dense", "local(2)", "2 x retention");

        assertThat(LayerList.brief(kinds))
                .containsExactly("3 x dense", "local(2)", "2 x retention");
        LayerList two = LayerList.of(List.of("2 x dense", "retention")).orElseThrow();
        assertThat(two.ofCount(5).kinds())
                .containsExactly("dense", "dense", "retention", "dense", "dense");
        assertThat(two.setting()).isEqualTo("[\"2 x dense\", \"retention\"]");
        assertThat(LayerList.of(7).ofCount(3).setting()).isEqualTo("3");
    }
}
