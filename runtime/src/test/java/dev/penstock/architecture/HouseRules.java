package dev.penstock.architecture;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.core.domain.JavaModifier.STATIC;
import static com.tngtech.archunit.core.domain.JavaModifier.SYNTHETIC;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noFields;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaField;
import com.tngtech.archunit.lang.ArchRule;

/**
 * What may know what, for classes below a root package. The root is an argument so that the same
 * rules can be shown to bite on code that breaks them.
 */
record HouseRules(String root) {

    ArchRule packagesHaveNoCycles() {
        return slices().matching(root + ".(**)").should().beFreeOfCycles();
    }

    ArchRule theJudgeKnowsNoGenerator() {
        return noClasses()
                .that()
                .resideInAPackage(root + ".schedules.validate..")
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage(root + ".schedules.generate..", root + ".schedules.lower..")
                .because("a judge that shares code with a generator shares its mistakes");
    }

    ArchRule generatorsKnowNoSimulator() {
        return noClasses()
                .that()
                .resideInAPackage(root + ".schedules.generate..")
                .should()
                .dependOnClassesThat()
                .resideInAPackage(root + ".schedules.simulate..");
    }

    ArchRule devicesKnowNoSchedulesAndNoActors() {
        return noClasses()
                .that()
                .resideInAPackage(root + ".cuda..")
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage(root + ".schedules..", root + ".actors..", root + ".runtime..");
    }

    ArchRule actorsKnowNoApplication() {
        return noClasses()
                .that()
                .resideInAPackage(root + ".actors..")
                .should()
                .dependOnClassesThat()
                .resideInAPackage(root + ".runtime..");
    }

    ArchRule cpuAndGpuNeverSeeEachOther() {
        return slices().matching(root + ".cuda.(cpu|gpu)..").should().notDependOnEachOther();
    }

    ArchRule onlyTheGpuPackageSeesJcuda() {
        return only(".cuda.gpu..", "jcuda..");
    }

    ArchRule onlyTheAeronPackageSeesAeron() {
        return only(".actors.dataplane.aeron..", "io.aeron..");
    }

    ArchRule onlySerializationSeesKryo() {
        return only(".actors.serialization..", "com.esotericsoftware..");
    }

    ArchRule onlyTheCommandLineWritesToTheTerminal() {
        return noClasses()
                .that()
                .resideOutsideOfPackage(root + ".runtime.cli..")
                .should()
                .accessField(System.class, "out")
                .orShould()
                .accessField(System.class, "err");
    }

    ArchRule nothingStaticChanges() {
        return noFields()
                .that(describe("are static and not made by the compiler", HouseRules::isStatic))
                .should()
                .notBeFinal()
                .because("state belongs to whoever owns it");
    }

    private static boolean isStatic(JavaField field) {
        return field.getModifiers().contains(STATIC) && !field.getModifiers().contains(SYNTHETIC);
    }

    private ArchRule only(String ours, String theirs) {
        return noClasses()
                .that()
                .resideOutsideOfPackage(root + ours)
                .should()
                .dependOnClassesThat()
                .resideInAPackage(theirs);
    }
}
