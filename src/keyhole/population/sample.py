"""A sample and the population it was drawn from: everything a model may know."""

from dataclasses import dataclass, field

from keyhole.population.size import at_least_the_sample
from keyhole.table.contingency import ContingencyTable
from keyhole.table.size_index import SizeIndex
from keyhole.table.structural_zeros import StructuralZeros


@dataclass(frozen=True)
class Sample:
    """The tabulated sample, the size of its population and what is known to be impossible.

    Attributes
    ----------
    table
        The sample's counts by key variables (and sums of weights, if any).
    population_size
        N, the number of people in the population, sampled ones included.
    zeros
        Combinations that nobody in the population can have.
    """

    table: ContingencyTable
    population_size: int
    zeros: StructuralZeros | None = field(default=None)

    def __post_init__(self) -> None:
        at_least_the_sample(self.population_size, self.table.records)

    @property
    def sample_size(self) -> int:
        return self.table.records

    @property
    def unsampled_size(self) -> int:
        """The number of people of the population who are not in the sample, N - n."""
        return self.population_size - self.sample_size

    @property
    def sampling_fraction(self) -> float:
        return self.sample_size / self.population_size

    @property
    def size_index(self) -> SizeIndex:
        return self.table.size_index

    @property
    def uniques(self) -> int:
        """The number of sample-unique records."""
        return len(self.table.uniques)

    @property
    def admissible_cells(self) -> int:
        """The number of cells that somebody could be in, exactly."""
        return self.table.size if self.zeros is None else self.zeros.admissible_cells
