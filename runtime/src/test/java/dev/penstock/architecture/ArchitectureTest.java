package dev.penstock.architecture;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.lang.ArchRule;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Holds the rules of the house, and shows of each that it would notice. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ArchitectureTest {
    private static final String HOUSE = "dev.penstock";
    private static final String BROKEN_HOUSE = "dev.penstock.architecture.fixture";

    private static final Map<String, Function<HouseRules, ArchRule>> RULES =
            Map.ofEntries(
                    Map.entry("packagesHaveNoCycles", HouseRules::packagesHaveNoCycles),
                    Map.entry("theJudgeKnowsNoGenerator", HouseRules::theJudgeKnowsNoGenerator),
                    Map.entry("generatorsKnowNoSimulator", HouseRules::generatorsKnowNoSimulator),
                    Map.entry(
                            "devicesKnowNoSchedulesAndNoActors",
                            HouseRules::devicesKnowNoSchedulesAndNoActors),
                    Map.entry("actorsKnowNoApplication", HouseRules::actorsKnowNoApplication),
                    Map.entry("cpuAndGpuNeverSeeEachOther", HouseRules::cpuAndGpuNeverSeeEachOther),
                    Map.entry("onlyTheGpuPackageSeesJcuda", HouseRules::onlyTheGpuPackageSeesJcuda),
                    Map.entry(
                            "onlyTheAeronPackageSeesAeron",
                            HouseRules::onlyTheAeronPackageSeesAeron),
                    Map.entry("onlySerializationSeesKryo", HouseRules::onlySerializationSeesKryo),
                    Map.entry(
                            "onlyTheCommandLineWritesToTheTerminal",
                            HouseRules::onlyTheCommandLineWritesToTheTerminal),
                    Map.entry("nothingStaticChanges", HouseRules::nothingStaticChanges),
                    Map.entry("schedulesArePure", HouseRules::schedulesArePure),
                    Map.entry(
                            "actorsSeeOfSchedulesOnlyOps", HouseRules::actorsSeeOfSchedulesOnlyOps),
                    Map.entry(
                            "onlyTheFactoryOfDevicesSeesGpus",
                            HouseRules::onlyTheFactoryOfDevicesSeesGpus),
                    Map.entry("portsSeeContractsOnly", HouseRules::portsSeeContractsOnly),
                    Map.entry(
                            "theModelIsSeenByItsFrontDoors",
                            HouseRules::theModelIsSeenByItsFrontDoors),
                    Map.entry(
                            "theCommandLineIsEnteredByItsMain",
                            HouseRules::theCommandLineIsEnteredByItsMain),
                    Map.entry(
                            "packagesHaveAtMostFortyTypes",
                            HouseRules::packagesHaveAtMostFortyTypes),
                    Map.entry(
                            "methodsHaveAtMostNineParameters",
                            HouseRules::methodsHaveAtMostNineParameters),
                    Map.entry(
                            "loopsCallVectorHelpersThemselves",
                            HouseRules::loopsCallVectorHelpersThemselves));

    private JavaClasses house = new ClassFileImporter().importClasses();
    private JavaClasses brokenHouse = house;

    @BeforeAll
    void readClasses() {
        house =
                new ClassFileImporter()
                        .withImportOption(new ImportOption.DoNotIncludeTests())
                        .importPackages(HOUSE);
        brokenHouse = new ClassFileImporter().importPackages(BROKEN_HOUSE);
    }

    static Stream<String> rules() {
        return RULES.keySet().stream().sorted();
    }

    @ParameterizedTest
    @MethodSource("rules")
    void theHouseKeeps(String rule) {
        ruleFor(rule, HOUSE).check(house);
    }

    @ParameterizedTest
    @MethodSource("rules")
    void aBrokenHouseIsNoticedBy(String rule) {
        assertThatThrownBy(() -> ruleFor(rule, BROKEN_HOUSE).check(brokenHouse))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining(BROKEN_HOUSE);
    }

    @Test
    void noSwitchOverOpsHasADefault() throws IOException {
        List<String> found = new ArrayList<>();
        for (String module : List.of("schedules", "actors", "runtime", "benchmarks")) {
            found.addAll(SwitchesOverOps.withDefault(Path.of("..", module, "src/main/java")));
        }

        assertThat(found).isEmpty();
    }

    @Test
    void aSwitchOverOpsWithADefaultIsNoticed() throws IOException {
        Path fixtures = Path.of("src/test/java/dev/penstock/architecture/fixture");

        assertThat(SwitchesOverOps.withDefault(fixtures))
                .singleElement()
                .asString()
                .contains("ForgetfulSwitch.java: switch (op)");
    }

    @Test
    void allModulesAreLookedAt() {
        assertThat(house.stream().map(type -> type.getPackageName()))
                .contains(
                        "dev.penstock.schedules.ir",
                        "dev.penstock.cuda.device",
                        "dev.penstock.actors.spi",
                        "dev.penstock.runtime.cli")
                .noneMatch(name -> name.startsWith(BROKEN_HOUSE));
    }

    private static ArchRule ruleFor(String name, String root) {
        return RULES.get(name).apply(new HouseRules(root)).allowEmptyShould(true);
    }
}
