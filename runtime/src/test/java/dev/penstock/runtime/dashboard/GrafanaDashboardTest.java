package dev.penstock.runtime.dashboard;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.runtime.events.RunEvent;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The dashboard file for Grafana asks for what is exported, and for all of it. */
class GrafanaDashboardTest {
    private static final Path FILE = Path.of("../deploy/grafana/penstock-run.json");
    private static final Pattern METRIC = Pattern.compile("penstock_[a-z_]+");

    @Test
    void everyMetricItNamesIsExportedAndTheOtherWayRound() throws IOException {
        Set<String> asked = new TreeSet<>();
        for (JsonNode expression : new ObjectMapper().readTree(FILE.toFile()).findValues("expr")) {
            METRIC.matcher(expression.asText()).results().forEach(at -> asked.add(at.group()));
        }

        assertThat(asked).isEqualTo(exported());
    }

    @Test
    void panelsHaveNumbersOfTheirOwnAndDoNotOverlap() throws IOException {
        Set<Integer> ids = new HashSet<>();
        Set<List<Integer>> cells = new HashSet<>();
        for (JsonNode panel : new ObjectMapper().readTree(FILE.toFile()).get("panels")) {
            assertThat(ids.add(panel.get("id").asInt()))
                    .as("id of %s", panel.get("title"))
                    .isTrue();
            assertThat(panel.get("targets")).isNotEmpty();
            JsonNode place = panel.get("gridPos");
            assertThat(place.get("x").asInt() + place.get("w").asInt()).isLessThanOrEqualTo(24);
            for (int x = 0; x < place.get("w").asInt(); x++) {
                for (int y = 0; y < place.get("h").asInt(); y++) {
                    var cell = List.of(place.get("x").asInt() + x, place.get("y").asInt() + y);
                    assertThat(cells.add(cell)).as("%s at %s", panel.get("title"), cell).isTrue();
                }
            }
        }
        assertThat(ids).hasSizeGreaterThan(10);
    }

    /** Of a run to which everything has happened. */
    private static Set<String> exported() throws IOException {
        var view = new RunView(Path.of("run"));
        view.apply(
                new RunEvent.Began(
                        1,
                        1,
                        "run",
                        0,
                        9,
                        64,
                        1,
                        "",
                        RankGrid.pipeline(2),
                        List.of(8L, 9L),
                        "",
                        Map.of(),
                        ""));
        view.apply(
                new RunEvent.Members(1, List.of(new RunEvent.Members.Member(0, "node", 7, "0.1"))));
        view.apply(new RunEvent.Leases(1, List.of(120L)));
        view.apply(
                new RunEvent.Stepped(
                        2,
                        1,
                        4.5,
                        1.5,
                        1e-3,
                        0,
                        500_000,
                        0.25,
                        0.2,
                        Map.of("forward", List.of(250_000L)),
                        List.of(1024L, 1025L)));
        view.apply(
                new RunEvent.Links(
                        2, 1, List.of(new RunEvent.Links.Link(0, 1, 10, 11, 12, 13, 14, 15))));
        view.apply(new RunEvent.Saved(3, 1, 100, 1000));
        view.apply(new RunEvent.Verified(3, 1, true, 1000, ""));
        return new String(view.prometheus(), StandardCharsets.UTF_8)
                .lines()
                .filter(line -> !line.startsWith("#"))
                .map(line -> line.substring(0, line.indexOf('{')))
                .collect(Collectors.toCollection(TreeSet::new));
    }
}
