package dev.penstock.systemtests.runs;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.runtime.dashboard.DashboardServer;
import dev.penstock.runtime.events.RunEvent;
import dev.penstock.runtime.events.RunEventLines;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import dev.penstock.schedules.simulate.UnitCosts;
import dev.penstock.systemtests.support.Browser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The page in a real browser. */
@Timeout(value = 4, unit = TimeUnit.MINUTES)
class DashboardIT {
    private static final Path PICTURES = Path.of("target/dashboard");

    /** Detects hangs; the measured times are in a file next to the pictures. */
    private static final double PATIENCE_MS = 20_000;

    @TempDir private static Path profiles;
    private static Browser browser;

    @TempDir private Path folder;
    private RunDirectory directory;

    @BeforeAll
    static void startBrowser() throws Exception {
        var chromium = Browser.installed();
        Assumptions.assumeTrue(
                chromium.isPresent(), "skipped: no chromium on the PATH to test the page with");
        browser = new Browser(chromium.get(), profiles.resolve("profile"));
        Files.createDirectories(PICTURES);
    }

    @AfterAll
    static void endBrowser() throws Exception {
        if (browser != null) {
            browser.close();
        }
    }

    @BeforeEach
    void layOut() {
        directory = new RunDirectory(folder);
    }

    @Test
    void aLiveRunIsFollowedAndAKilledRankIsShown() throws Exception {
        Schedule schedule = oneForwardOneBackward(4, 8);
        write(began("live", schedule, 50), opened(4));
        for (int step = 1; step <= 5; step++) {
            write(stepped(step, 4));
        }
        write(sampled(5, schedule));
        try (DashboardServer server = DashboardServer.start(directory, 0)) {
            browser.open(server.url());
            assertThat(browser.text("name")).isEqualTo("live");
            assertThat(browser.text("figures")).contains("5 of 50");
            browser.await("document.getElementById('bubble').textContent.startsWith('step 5')");

            write(stepped(6, 4));
            browser.await("document.getElementById('figures').textContent.includes('6 of 50')");

            write(
                    new RunEvent.Noted(
                            now(), RunEvent.Noted.Kind.RECOVERING, "rank 2 died: kill -9"));
            browser.await("document.getElementById('state').textContent === 'recovering'");
            write(members(4, "another process"), links(6, 4));
            browser.await(
                    "document.getElementById('members').textContent.includes('another process')");
            browser.await("document.getElementById('links').textContent.includes('MiB')");
            browser.await(
                    "document.getElementById('happenings').innerText.includes('rank 2 died')");

            write(new RunEvent.Recovered(now(), "back again", 2, List.of(2), "mirror", 1, 1, 0, 6));
            write(
                    stepped(7, 4),
                    new RunEvent.Ended(now(), RunEvent.Ended.Outcome.COMPLETED, 7, ""));
            browser.await("document.getElementById('state').textContent === 'completed'");
            assertThat(browser.text("happenings")).contains("back again");
        }
        browser.await("!document.hidden"); // its server is gone, but the page stays
    }

    @Test
    void theStepIsShownNextToTheSimulatedOneAndKeysMoveIt() throws Exception {
        Schedule schedule = oneForwardOneBackward(4, 8);
        finished("finished", schedule, 200, 4);
        try (DashboardServer server = DashboardServer.start(directory, 0)) {
            browser.open(server.url());
            browser.await("document.getElementById('bubble').textContent.includes('measured')");
            String height = "document.getElementById('gantt').clientHeight";
            browser.await(height + " > 0"); // painted in the frame after the text
            double alone = browser.evaluate(height).asDouble();
            browser.evaluate("document.getElementById('simulated').click()");
            browser.await(height + " > " + alone);
            browser.screenshot(PICTURES.resolve("light.png"));
            assertThat(browser.text("members"))
                    .contains("rank 3", "stage process", "4714", "0.1.0", "0.2 s", "spare");
            assertThat(browser.text("links")).contains("rank 3", "100.0 MiB", "17");
            assertThat(browser.text("checkpoints")).contains("78.0 MiB", "912.0 ms", "whole");
            assertThat(browser.text("stages")).contains("waiting for input").contains("%");
            assertThat(browser.text("figures")).contains("health");

            String range = "document.getElementById('gantt').dataset.range";
            String whole = browser.evaluate(range).asText();
            browser.evaluate("document.getElementById('gantt').focus()");
            browser.press("+");
            browser.await(range + " !== '" + whole + "'");
            browser.press("0");
            browser.await(range + " === '" + whole + "'");

            browser.theme("dark");
            browser.screenshot(PICTURES.resolve("dark.png"));
            browser.width(390);
            browser.await("document.scrollingElement.scrollWidth <= 390");
            browser.screenshot(PICTURES.resolve("phone.png"));
            browser.width(1300);
            browser.theme("light");
        }
    }

    /**
     * The picture for README and docs: a quickstart recorded on two cores. Look at it and copy it:
     * target/dashboard/docs.png to docs/dashboard.png.
     */
    @Test
    void theDocumentedPictureShowsAQuickstart() throws Exception {
        RunEventLines.writeRecordedQuickstart(directory.events());
        browser.theme("light");
        browser.window(1240, 640, 1.5);
        try (DashboardServer server = DashboardServer.start(directory, 0)) {
            browser.open(server.url());
            browser.await("document.getElementById('bubble').textContent.includes('measured')");
            browser.evaluate("document.getElementById('simulated').click()");
            browser.await("document.getElementById('gantt').clientHeight > 70");
            browser.await( // charts fit into their columns, including the first one
                    "[...document.querySelectorAll('.chart')].every(holder =>"
                            + " holder.querySelector('canvas').clientWidth <= holder.clientWidth)");
            browser.screenshotOfWindow(PICTURES.resolve("docs.png"));

            assertThat(browser.text("name")).isEqualTo("quickstart");
            assertThat(browser.text("state")).isEqualTo("completed");
            assertThat(browser.text("figures")).contains("600 of 600");
            assertThat(browser.text("ranks")).contains("rank 1", "cpu");
            assertThat(browser.text("links")).contains("GiB");
        } finally {
            browser.width(1300);
        }
    }

    /** Names, paths, events and devices come from outside. */
    @Test
    void textFromARunNeverBecomesMarkup() throws Exception {
        String evil = "<img src=x onerror=\"window.broken=1\"><script>window.broken=1</script>";
        Schedule schedule = oneForwardOneBackward(2, 2);
        write(
                began(evil, schedule, 5),
                new RunEvent.Opened(now(), List.of(evil, evil), evil),
                stepped(1, 2),
                sampled(1, schedule),
                members(2, evil),
                links(1, 2),
                new RunEvent.Saved(now(), 1, 1 << 20, 5_000),
                new RunEvent.Verified(now(), 1, false, 5_000, evil),
                new RunEvent.Noted(now(), RunEvent.Noted.Kind.STALL, evil),
                new RunEvent.Ended(now(), RunEvent.Ended.Outcome.FAILED, 1, evil));
        try (DashboardServer server = DashboardServer.start(directory, 0)) {
            browser.open(server.url());
            browser.await("document.getElementById('state').textContent === 'failed'");

            for (String id :
                    List.of(
                            "name",
                            "told",
                            "happenings",
                            "ranks",
                            "facts",
                            "members",
                            "checkpoints")) {
                assertThat(browser.text(id)).as(id).contains(evil);
            }
            assertThat(browser.evaluate("typeof window.broken").asText()).isEqualTo("undefined");
            assertThat(
                            browser.evaluate(
                                            "document.querySelectorAll('main img, main"
                                                    + " script').length")
                                    .asInt())
                    .isZero();
        }
    }

    @Test
    void thePageStaysResponsiveWithSixtyFourRanksAndALongHistory() throws Exception {
        Schedule schedule = oneForwardOneBackward(64, 256);
        finished("large", schedule, 10_000, 64);
        try (DashboardServer server = DashboardServer.start(directory, 0)) {
            long start = System.nanoTime();
            browser.open(server.url());
            double loaded = (System.nanoTime() - start) / 1e6;
            browser.await("Number(document.getElementById('gantt').dataset.drawMillis) > 0");
            browser.await("document.getElementById('bubble').textContent.includes('measured')");
            double drawn =
                    browser.evaluate(
                                    """
                                    new Promise(done => {
                                      const canvas = document.getElementById('gantt');
                                      canvas.focus();
                                      let worst = 0, presses = 0;
                                      const press = () => {
                                        const start = performance.now();
                                        const key = presses % 3 === 0 ? '-' : presses % 3 === 1 ? '+' : 'ArrowLeft';
                                        canvas.dispatchEvent(new KeyboardEvent('keydown', { key }));
                                        requestAnimationFrame(() => requestAnimationFrame(() => {
                                          worst = Math.max(worst, performance.now() - start);
                                          if (++presses < 12) press(); else done(worst);
                                        }));
                                      };
                                      press();
                                    })
                                    """)
                            .asDouble();
            Files.writeString(
                    PICTURES.resolve("figures.txt"),
                    "10,000 steps of 64 ranks: shown after %.0f ms; a key press on 64 x 256 is drawn within %.0f ms%n"
                            .formatted(loaded, drawn));
            assertThat(browser.text("figures")).contains("10000 of 10000");
            assertThat(loaded).isLessThan(PATIENCE_MS);
            assertThat(drawn).isPositive().isLessThan(PATIENCE_MS);
        }
    }

    // ---- runs ---------------------------------------------------------------------------------

    private void finished(String name, Schedule schedule, int steps, int ranks) throws IOException {
        List<RunEvent> events = new ArrayList<>();
        events.add(began(name, schedule, steps));
        events.add(opened(ranks));
        for (int step = 1; step <= steps; step++) {
            events.add(stepped(step, ranks));
            if (step == 3 || step == steps) {
                events.add(sampled(step, schedule));
            }
            if (step % 50 == 0) {
                events.add(new RunEvent.Evaluated(now(), step, 2.1 + 3.0 / Math.sqrt(step)));
            }
        }
        events.add(members(ranks, "stage process"));
        events.add(new RunEvent.Leases(now(), Collections.nCopies(ranks + 1, 240L)));
        events.add(links(steps, ranks));
        for (int step = steps / 2; step <= steps; step += steps / 2) {
            events.add(new RunEvent.Saved(now(), step, 78L << 20, 912_000));
            events.add(new RunEvent.Verified(now(), step, true, 187_000, ""));
        }
        events.add(
                new RunEvent.Recovered(
                        now(), "recovered: rank 1 died", 2, List.of(1), "mirror", 1, 1, 0, steps));
        events.add(new RunEvent.Ended(now(), RunEvent.Ended.Outcome.COMPLETED, steps, ""));
        write(events.toArray(RunEvent[]::new));
    }

    private static Schedule oneForwardOneBackward(int ranks, int microBatches) {
        return Lowering.lower(Generators.generate("1f1b", PipelineShape.of(ranks, microBatches)));
    }

    private static RunEvent began(String name, Schedule schedule, int steps) {
        int ranks = schedule.programs().size();
        return new RunEvent.Began(
                now(),
                RunEvent.VERSION,
                name,
                0,
                steps,
                2048,
                3_290_000,
                ScheduleText.print(schedule),
                RankGrid.pipeline(ranks),
                Collections.nCopies(ranks, 50L << 20),
                "run { name = test }",
                Map.of("host", "test"),
                "");
    }

    private static RunEvent opened(int ranks) {
        return new RunEvent.Opened(now(), Collections.nCopies(ranks, "cpu (1 thread)"), "kernels");
    }

    private static RunEvent members(int ranks, String node) {
        List<RunEvent.Members.Member> members = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            members.add(new RunEvent.Members.Member(rank, node, 4711L + rank, "0.1.0"));
        }
        members.add(new RunEvent.Members.Member(-1, "spare process", 4700, "0.1.0"));
        return new RunEvent.Members(now(), members);
    }

    private static RunEvent links(long step, int ranks) {
        List<RunEvent.Links.Link> links = new ArrayList<>();
        for (int rank = 0; rank + 1 < ranks; rank++) {
            long bytes = step * 8 * (64L << 10);
            links.add(new RunEvent.Links.Link(rank, rank + 1, bytes, bytes, 3, 17, 0, 0));
            links.add(new RunEvent.Links.Link(rank + 1, rank, bytes, bytes, 0, 5, 1, 1));
        }
        return new RunEvent.Links(now(), step, links);
    }

    private static RunEvent stepped(long step, int ranks) {
        return new RunEvent.Stepped(
                now(),
                step,
                2 + 3 / Math.sqrt(step) + .1 * Math.sin(step),
                1 + 1.0 / step,
                1e-3,
                0,
                250_000,
                .2 + .02 * Math.cos(step),
                .2,
                Map.of(
                        "forward", Collections.nCopies(ranks, 60_000L),
                        "backward", Collections.nCopies(ranks, 120_000L),
                        "receive", Collections.nCopies(ranks, 60_000L)),
                step == 1 ? Collections.nCopies(ranks, 45L << 20) : List.of());
    }

    /** The simulated step, stretched to a quarter of a second. */
    private static RunEvent sampled(long step, Schedule schedule) {
        Timeline timeline = ScheduleSimulator.simulate(schedule, UnitCosts.defaults());
        double scale = 250_000.0 / timeline.makespanNanos();
        List<RunEvent.OpTimes.Rank> ranks = new ArrayList<>();
        for (int rank = 0; rank < schedule.programs().size(); rank++) {
            int ops = schedule.program(rank).ops().size();
            int[] starts = new int[ops];
            int[] ends = new int[ops];
            for (int i = 0; i < ops; i++) {
                starts[i] = (int) (timeline.startNanos(rank, i) * scale);
                ends[i] = (int) (timeline.endNanos(rank, i) * scale);
            }
            ranks.add(new RunEvent.OpTimes.Rank(starts, ends, 0, 0));
        }
        return new RunEvent.OpTimes(now(), step, ranks);
    }

    private void write(RunEvent... events) throws IOException {
        Files.createDirectories(folder);
        RunEventLines.append(directory.events(), events);
    }

    private static long now() {
        return System.currentTimeMillis();
    }
}
