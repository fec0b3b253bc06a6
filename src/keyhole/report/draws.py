"""The draws of chains as a netCDF file that ArviZ reads."""

from collections.abc import Sequence
from io import BytesIO

import numpy as np

from keyhole.io.extras import need
from keyhole.risk.estimate import RiskAssessment


def draws_file(assessments: Sequence[RiskAssessment]) -> bytes:
    """Watched numbers by chain and draw, in the group ``posterior``; with several models, one group each."""
    netcdf = need("h5netcdf", "draws")
    sampled = [found for found in assessments if found.draws is not None]
    buffer = BytesIO()
    with netcdf.File(buffer, "w") as file:
        for found in sampled:
            assert found.draws is not None
            group = file.create_group("posterior" if len(sampled) == 1 else f"{found.model}/posterior")
            group.attrs["inference_library"] = f"keyhole {found.model}"
            chains, draws = next(iter(found.draws.values())).shape
            group.dimensions = {"chain": chains, "draw": draws}
            for name, size in (("chain", chains), ("draw", draws)):
                group.create_variable(name, (name,), data=np.arange(size))
            for name, values in found.draws.items():
                group.create_variable(name, ("chain", "draw"), data=values)
    return buffer.getvalue()
