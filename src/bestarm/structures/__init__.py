"""Structure that the means of the arms may have, and how the rewards weigh one against another."""
